-- Acting on jobs and on the queue from outside.

-- stand_of: one job before it is acted on
select state, request, target, kind, attempt, cleared_at, webhook from job_rows where id = :id

-- ask_holder: the holder of this job is to cancel or to pause it
update job_rows set request = :action, requested_at = :now where id = :id

-- keep_attempt: the attempt that ended last goes into the history, if it stands in the job's own row
insert into attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error, log)
select id, attempt, node, worker, started_at, finished_at, last_outcome, error, log
from job_rows
where id = :id and last_outcome is not null

-- control: moves a job that nobody holds; :effect is its new state
update job_rows
set state = :effect,
  run_at = case when :action <> 'resume' then run_at when exists (
      select 1 from attempts a where a.job_id = job_rows.id and a.attempt = job_rows.attempt and a.outcome = 'snoozed'
    ) then max(run_at, :now) else :now end,
  finished_at = case when :effect = 'canceled' then :now else finished_at end,
  cleared_at = case when :action = 'clear' then :now end,
  reason = :reason,
  forgiven = case when :action = 'resume' then attempt else forgiven end,
  max_attempts = case when :action = 'resume' then max_attempts + attempt - forgiven
    else max_attempts end,
  spent = case when :action <> 'resume' then spent end,
  last_outcome = null, log = null, stale_at = null, changed_at = :now, parked = 0, behind = 0
where id = :id

-- clear: notes that somebody has seen to this failed job
update job_rows set cleared_at = coalesce(cleared_at, :now) where id = :id

-- queue_state: since when the queue is paused, and by whom
select paused_at, paused_by from queue_state

-- pause_queue: from now on nothing is claimed; changes nothing if it was paused already
update queue_state set paused_at = :now, paused_by = :by where paused_at is null

-- declare_tenant: the name of the tenant whose store this is
update queue_state set tenant = :tenant where tenant <> :tenant

-- resume_queue: claims go on; changes nothing if the queue was not paused
update queue_state set paused_at = null, paused_by = null where paused_at is not null
