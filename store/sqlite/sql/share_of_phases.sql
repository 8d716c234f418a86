-- share_of_phases: how far a job has come whose phase is in between, in percent
select 100.0 * sum(state = 'succeeded') / count(*) from job_phases where job_id = :job_id
