-- board: jobs of one sort for a screen, the first :bound that fit among the first :span; {which} and {order} are written out, so that a partial index serves
select
  id, kind, state, target, priority, attempt, max_attempts, forgiven, created_at, run_at, started_at, finished_at,
  node, worker, request, progress, substr(progress_note, 1, :note), substr(error, 1, :text),
  substr(reason, 1, :note), parked, behind
from (select * from job_rows where {which} order by {order} limit :span)
where {shown} and (:kind is null or kind = :kind) and (:target is null or target = :target)
order by {order}
limit :bound
