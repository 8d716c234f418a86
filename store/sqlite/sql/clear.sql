-- clear: notes that somebody has seen to this failed job
update job_rows set cleared_at = coalesce(cleared_at, :now) where id = :id
