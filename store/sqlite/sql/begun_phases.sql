-- begun_phases: what is stored of the phases of one job
select name, state, result from job_phases where job_id = :job_id
