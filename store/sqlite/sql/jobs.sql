-- jobs: a page of jobs, newest first; {which} is written out, not bound, so that a partial index on a state serves
select
  id, kind, state, payload, result, error, reason, priority, attempt, max_attempts, forgiven,
  created_at, run_at, started_at, finished_at, node, worker, lease_expires_at, heartbeat_at,
  dedup_key, request, progress, progress_note, log, spent, cleared_at, target, requested_at, stale_at,
  last_outcome
from job_rows
where {which} and id < :before and (:kind is null or kind = :kind)
  and (:target is null or target = :target)
order by id desc
limit :count
