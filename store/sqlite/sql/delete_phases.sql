-- delete_phases: the phases of a job that is deleted
delete from job_phases where job_id = :id
