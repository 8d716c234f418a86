-- counts: jobs by state, exact, the queue's switch, and halted targets up to 1,000; what is leased is counted, the rest is kept count of
with recursive changes as (
    select coalesce(sum(enqueued), 0) as enqueued, coalesce(sum(pending), 0) as pending, coalesce(sum(queued), 0) as queued,
           coalesce(sum(paused), 0) as paused, coalesce(sum(succeeded), 0) as succeeded,
           coalesce(sum(failed), 0) as failed, coalesce(sum(canceled), 0) as canceled
    from {schema}.count_changes
),
leased as (
    select count(*) filter (where state = 'assigned') as assigned, count(*) filter (where state = 'running') as running
    from {schema}.job_rows where state in ('assigned', 'running')
),
-- From one target to the next along job_rows_halting, however many jobs halt each.
halted (target, number) as (
    (select job.target, 1 from {schema}.job_rows job
     where job.target is not null and (job.state = 'paused' or job.state = 'failed' and job.cleared_at is null)
     order by job.target limit 1)
  union all
    select next.target, halted.number + 1
    from halted cross join lateral (
        select job.target from {schema}.job_rows job
        where job.target > halted.target and (job.state = 'paused' or job.state = 'failed' and job.cleared_at is null)
        order by job.target limit 1) next
    where halted.number < 1000
)
select (c.enqueued + d.enqueued)::bigint, (c.pending + d.pending)::bigint, (c.queued + d.queued)::bigint,
       leased.assigned, leased.running,
       (c.paused + d.paused)::bigint, (c.succeeded + d.succeeded)::bigint,
       (c.failed + d.failed)::bigint, (c.canceled + d.canceled)::bigint,
       q.paused_at, q.paused_by, (select count(*) from halted)::int
from {schema}.job_counts c, changes d, leased, {schema}.queue_state q
