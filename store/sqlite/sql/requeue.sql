-- requeue: gives a job back to the queue, its attempt being recorded; only while it is leased under :token
update job_rows
set state = 'queued', run_at = coalesce(:run_at, run_at), result = :result,
  error = coalesce(:error, error), reason = :reason, last_outcome = null,
  worker = coalesce(:worker, worker), started_at = coalesce(started_at, :started_at),
  finished_at = :finished_at,
  forgiven = forgiven + :forgive, max_attempts = max_attempts + :forgive,
  progress = coalesce(:percent, progress),
  progress_note = case when :percent is null then progress_note else :note end,
  log = :log, spent = coalesce(:spent, spent), request = null, requested_at = null,
  lease_expires_at = null, heartbeat_at = null
where id = :id and claim_token = :token and state in ('assigned', 'running')
returning run_at
