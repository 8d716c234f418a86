-- key_holder: the job that holds a key; none if its time is over, or its job has ended or is gone
select job_id from dedup_keys
where key = :key and (until > :now or (until is null and exists (
  select 1 from job_rows
  where job_rows.id = dedup_keys.job_id and state not in ('succeeded', 'failed', 'canceled')
)))
