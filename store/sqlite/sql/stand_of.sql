-- stand_of: the state of one job, and what its holder is asked for
select state, request from job_rows where id = :id
