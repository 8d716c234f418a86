-- why_job: what the job's own row says of where it stands, how its last ended attempt ended, the queue's switch, and the time
select
  job.id, job.kind, job.state, job.priority, job.run_at, job.started_at, job.finished_at, job.attempt,
  job.node, job.worker, job.lease_expires_at, job.request, job.requested_at, job.reason, job.error,
  job.target, job.parked, job.cleared_at,
  (select outcome from attempts where job_id = job.id order by attempt desc limit 1),
  :now, queue_state.paused_at, queue_state.paused_by
from queue_state, job_rows as job
where job.id = :id
