-- step_forward: gives one job that stood behind back to the claim
update job_rows set behind = 0 where id = :id
