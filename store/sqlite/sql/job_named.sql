-- job_named: the kind and the target of a job
select kind, target from job_rows where id = :id
