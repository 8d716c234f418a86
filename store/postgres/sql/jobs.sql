-- jobs: one job by id, or jobs newest first, filtered, at most `bound`
select id, kind, state, payload::text, result::text, error::text, reason, priority, attempt, max_attempts, forgiven,
       created_at, run_at, started_at, finished_at, node, worker, lease_expires_at, heartbeat_at,
       dedup_key, request, progress, progress_note, log, spent::text, cleared_at, last_outcome
from {schema}.job_rows
where (%(id)s::bigint is null or id = %(id)s)
  and (%(states)s::text[] is null or state = any (%(states)s::text[]))
  and (%(kind)s::text is null or kind = %(kind)s)
  and (%(before_id)s::bigint is null or id < %(before_id)s)
order by id desc limit %(bound)s
