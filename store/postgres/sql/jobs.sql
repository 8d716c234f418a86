-- jobs: one job by id, or jobs newest first, filtered, at most `bound`
-- Ids are bounded in a way that a plan for any values can look up: else one old job would be found by a walk from the newest.
select id, kind, state, payload::text, result::text, error::text, reason, priority, attempt, max_attempts, forgiven,
       created_at, run_at, started_at, finished_at, node, worker, lease_expires_at, heartbeat_at,
       dedup_key, request, progress, progress_note, log, spent::text, cleared_at, target, requested_at, stale_at, last_outcome
from {schema}.job_rows
where id between coalesce(%(id)s::bigint, -9223372036854775807) and coalesce(%(id)s::bigint, 9223372036854775807)
  and id < coalesce(%(before_id)s::bigint, 9223372036854775807)
  and (%(states)s::text[] is null or state = any (%(states)s::text[]))
  and (%(kind)s::text is null or kind = %(kind)s)
  and (%(target)s::text is null or target = %(target)s)
order by id desc limit %(bound)s
