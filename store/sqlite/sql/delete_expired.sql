-- delete_expired: deletes a job; what belongs to it is deleted by statements of its own
delete from job_rows where id = :id returning id, kind, target, attempt, dedup_key
