-- take_key: a job holds this key from now on
insert into dedup_keys (key, job_id, until) values (:key, :job_id, :until)
on conflict (key) do update set job_id = excluded.job_id, until = excluded.until
