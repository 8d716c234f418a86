-- counts: jobs by state, exact, and the queue's switch; what is leased is counted, the rest is kept count of
with changes as (
    select coalesce(sum(enqueued), 0) as enqueued, coalesce(sum(pending), 0) as pending, coalesce(sum(queued), 0) as queued,
           coalesce(sum(paused), 0) as paused, coalesce(sum(succeeded), 0) as succeeded,
           coalesce(sum(failed), 0) as failed, coalesce(sum(canceled), 0) as canceled
    from {schema}.count_changes
),
leased as (
    select count(*) filter (where state = 'assigned') as assigned, count(*) filter (where state = 'running') as running
    from {schema}.job_rows where state in ('assigned', 'running')
)
select (c.enqueued + d.enqueued)::bigint, (c.pending + d.pending)::bigint, (c.queued + d.queued)::bigint,
       leased.assigned, leased.running,
       (c.paused + d.paused)::bigint, (c.succeeded + d.succeeded)::bigint,
       (c.failed + d.failed)::bigint, (c.canceled + d.canceled)::bigint,
       q.paused_at, q.paused_by
from {schema}.job_counts c, changes d, leased, {schema}.queue_state q
