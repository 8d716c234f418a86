-- delete_attempts: the earlier attempts of a job that is deleted
delete from attempts where job_id = :id
