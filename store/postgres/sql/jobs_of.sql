-- jobs_of: these jobs; the columns are those of `jobs`
select id, kind, state, payload::text, result::text, error::text, reason, priority, attempt, max_attempts, forgiven,
       created_at, run_at, started_at, finished_at, node, worker, lease_expires_at, heartbeat_at,
       dedup_key, request, progress, progress_note, log, spent::text, cleared_at, target, requested_at, stale_at, last_outcome
from {schema}.job_rows
where id = any (%(ids)s::bigint[])
order by id
