-- stand_of: the state of one job, what its holder is asked for, and its target
select state, request, target from job_rows where id = :id
