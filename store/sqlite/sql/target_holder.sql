-- target_holder: the job that has this target; 1 = it has not been claimed for it
select job_id, reserved from target_holders where target = :target
