-- claim: takes the queued jobs in :taken (JSON: id and worker of each) under a lease and counts the attempts; started at once where there is a worker
update job_rows
set state = case when taken.worker is null then 'assigned' else 'running' end,
  attempt = attempt + 1, claim_token = :token, node = :node, worker = taken.worker,
  lease_expires_at = :lease_expires_at, heartbeat_at = :now,
  started_at = case when taken.worker is null then null else :now end,
  finished_at = null, result = null, last_outcome = null,
  log = null, progress = null, progress_note = null
from (
  select json_extract(value, '$[0]') as id, json_extract(value, '$[1]') as worker
  from json_each(:taken)
) as taken
where job_rows.id = taken.id and +job_rows.state = 'queued'
