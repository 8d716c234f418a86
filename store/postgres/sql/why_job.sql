-- why_job: what the job's own row says of where it stands, how its last ended attempt ended, the queue's switch, and the time
select job.id, job.kind, job.state, job.priority, job.run_at, job.started_at, job.finished_at, job.attempt,
       job.node, job.worker, job.lease_expires_at, job.request, job.requested_at, job.reason, job.error::text,
       job.target, job.parked, job.cleared_at, past.outcome, clock_timestamp(), queue.paused_at, queue.paused_by
from {schema}.queue_state queue, {schema}.job_rows job
left join lateral (
    select ended.outcome from {schema}.attempts ended where ended.job_id = job.id
    order by ended.attempt desc limit 1) past on true
where job.id = %(id)s
