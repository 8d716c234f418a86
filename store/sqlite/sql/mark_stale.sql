-- mark_stale: notes that the time of a job that has ended has come
update job_rows set stale_at = :now where id = :id returning id, kind, target, attempt
