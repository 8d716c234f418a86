-- renew: extends one lease that still stands, and marks the job as running once it has started
update job_rows
set lease_expires_at = :lease_expires_at, heartbeat_at = :now,
  state = case when :started_at is null then state else 'running' end,
  started_at = coalesce(started_at, :started_at), worker = coalesce(:worker, worker)
where id = :id and claim_token = :token and state in ('assigned', 'running')
