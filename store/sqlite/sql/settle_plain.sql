-- settle_plain: ends the jobs in :ended (JSON: id, token, worker, started_at, finished_at, result of each) as succeeded; only those that are leased under their token, which stays
update job_rows
set state = 'succeeded', result = ended.result, error = null, reason = null, last_outcome = 'succeeded',
  worker = coalesce(ended.worker, job_rows.worker), started_at = coalesce(job_rows.started_at, ended.started_at),
  finished_at = ended.finished_at,
  log = null, request = null, requested_at = null, lease_expires_at = null, heartbeat_at = null
from (
  select json_extract(value, '$[0]') as id, upper(json_extract(value, '$[1]')) as token,
    json_extract(value, '$[2]') as worker, json_extract(value, '$[3]') as started_at,
    json_extract(value, '$[4]') as finished_at, json_extract(value, '$[5]') as result
  from json_each(:ended)
) as ended
where job_rows.id = ended.id and hex(job_rows.claim_token) = ended.token
  and +job_rows.state in ('assigned', 'running')
