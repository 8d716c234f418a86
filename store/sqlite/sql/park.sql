-- park: takes one queued job, of whose kind as many run as may, out of the claim's way
update job_rows set parked = 1 where id = :id and state = 'queued'
