-- ask_holder: the holder of this job is to cancel or to pause it
update job_rows set request = :action, requested_at = :now where id = :id
