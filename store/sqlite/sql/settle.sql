-- settle: ends a job or pauses it; only while it is leased under :token, which stays for those who ask whether it was written
update job_rows
set state = :state, result = :result, error = :error, reason = :reason, last_outcome = :outcome,
  worker = coalesce(:worker, worker), started_at = coalesce(started_at, :started_at),
  finished_at = :finished_at,
  forgiven = forgiven + :forgive, max_attempts = max_attempts + :forgive,
  progress = coalesce(:percent, progress),
  progress_note = case when :percent is null then progress_note else :note end,
  log = :log, spent = coalesce(:spent, spent), request = null, requested_at = null,
  lease_expires_at = null, heartbeat_at = null
where id = :id and claim_token = :token and state in ('assigned', 'running')
returning run_at
