-- take_target: from now on this job has the target
insert into target_holders (target, job_id, reserved) values (:target, :id, :reserved)
on conflict (target) do update set job_id = excluded.job_id, reserved = excluded.reserved
