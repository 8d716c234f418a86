-- mark_running: an attempt has begun; only while its job is leased under :token
update job_rows
set state = 'running', started_at = coalesce(started_at, :started_at), worker = coalesce(:worker, worker),
  progress = max(coalesce(progress, 0), :percent)
where id = :id and claim_token = :token and state in ('assigned', 'running')
