-- tell_hook: makes a message for whoever is told of stale and of deleted jobs
insert into webhooks (job_id, url, type, attempt, created_at, due_at, body)
values (:id, :hook, :type, :attempt, :now, :now, :body)
