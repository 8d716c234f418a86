-- stand_behind: takes one queued job, whose target another has, out of the claim's way
update job_rows set behind = 1, parked = 0 where id = :id and state = 'queued'
