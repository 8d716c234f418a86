-- claim: takes one queued job under a lease and counts the attempt; started at once where it has a worker
update job_rows
set state = case when :worker is null then 'assigned' else 'running' end,
  attempt = attempt + 1, claim_token = :token, node = :node, worker = :worker,
  lease_expires_at = :lease_expires_at, heartbeat_at = :now,
  started_at = case when :worker is null then null else :now end,
  finished_at = null, result = null, last_outcome = null,
  log = null, progress = null, progress_note = null
where id = :id and state = 'queued'
