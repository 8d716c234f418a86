-- The queue as a whole: what is due, when the next job will be, and counts.

-- observe: what a scaling decision is made of: due and claimable jobs up to `bound`, how long the first of them has waited, whether any are parked, the room of the other nodes (and of those before this one by id), a number that changes with the first due job, and how many more jobs may be leased
with recursive now as materialized (select clock_timestamp() as at),
{levels},
due as materialized (
    select first.run_at
    from levels cross join lateral (
        select job.run_at from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority and job.run_at <= (select at from now)
          and (job.run_at, job.id) >= (levels.first_run_at, levels.first_id)
        order by job.run_at, job.id limit %(bound)s) first
    limit %(bound)s
)
select (select count(*) from due)::int,
       coalesce((select extract(epoch from (select at from now) - min(run_at)) from due), 0)::float8,
       (select paused_at is not null from {schema}.queue_state),
       exists (select from {schema}.job_rows job where job.parked),
       others.free, others.free_before, others.unhired, others.unhired_before,
       coalesce((select (extract(epoch from min(run_at)) * 1000000)::bigint from due), 0),
       case when %(most)s::int is not null
            then greatest(0, %(most)s::int - (select count(*)::int from {schema}.job_rows job where job.state in ('assigned', 'running'))) end
from (select coalesce(sum(room.free), 0)::int as free,
             coalesce(sum(room.free) filter (where room.is_before), 0)::int as free_before,
             coalesce(sum(room.unhired), 0)::int as unhired,
             coalesce(sum(room.unhired) filter (where room.is_before), 0)::int as unhired_before
      from (select greatest(0, node.max_count - node.busy) as free,
                   greatest(0, node.max_count - node.busy - node.idle) as unhired,
                   node.id < %(me)s::uuid as is_before
            from {schema}.nodes node, now
            where %(me)s::uuid is not null and node.id <> %(me)s::uuid and node.phase = 'running'
              and node.heartbeat_at > now.at - make_interval(secs => %(pauses)s * node.pause_seconds)) room) others

-- next_due: seconds until the next queued job that is not yet due becomes due; null if there is none
with recursive now as materialized (select clock_timestamp() as at),
{levels}
select extract(epoch from min(later.run_at) - (select at from now))::float8
from levels cross join lateral (
    select job.run_at from {schema}.job_rows job
    where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority and job.run_at > (select at from now)
    order by job.run_at, job.id limit 1) later

-- not_yet_due: counts queued jobs that are not yet due, those that are parked and those behind a target, each up to `bound`
with recursive now as materialized (select clock_timestamp() as at),
{levels}
select count(*)::int + (
    select count(*)::int from (
        select from {schema}.job_rows job where job.parked limit %(bound)s) parked) + (
    select count(*)::int from (
        select from {schema}.job_rows job where job.behind limit %(bound)s) behind)
from (
    select 1 from levels cross join lateral (
        select 1 from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority and job.run_at > (select at from now)
        order by job.run_at, job.id limit %(bound)s) later
    limit %(bound)s) counted

-- idle_check: whether only a hint or the passing of time can make a job claimable; whether jobs are due; seconds until the next one is. No row if the node `me` is not known
-- A node with leased jobs may retry them later, or pass their targets on, without a hint. A transaction that is writing jobs
-- may have left the hint to another one, which commits before it: it shows by the lock that every writer of the table holds.
with now as materialized (select clock_timestamp() as at),
levels as (select priority from {schema}.claimable_priorities),
seen as materialized (
    select (select paused_at is null from {schema}.queue_state) and exists (
               select from levels cross join lateral (
                   select 1 from {schema}.job_rows job
                   where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority
                     and job.run_at <= (select at from now)
                   order by job.run_at, job.id limit 1) first) as due,
           (select extract(epoch from min(later.run_at) - (select at from now))::float8
            from levels cross join lateral (
                select job.run_at from {schema}.job_rows job
                where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority
                  and job.run_at > (select at from now)
                order by job.run_at, job.id limit 1) later) as next_due_seconds
)
select not (due
            or exists (select from {schema}.job_rows job where job.state in ('assigned', 'running'))
            or exists (select from {schema}.job_rows job where job.parked)
            or exists (select from pg_locks writing
                       where writing.locktype = 'relation' and writing.relation = '{schema}.job_rows'::regclass
                         and writing.database = (select oid from pg_database where datname = current_database())
                         and writing.mode = 'RowExclusiveLock' and writing.pid is distinct from pg_backend_pid())),
       due, next_due_seconds
from seen where exists (select from {schema}.nodes node where node.id = %(me)s)

-- tenant_activity: whether there is anything to do for a tenant: due jobs that may be claimed, or parked ones; leases that ran out
-- One of these for each tenant, all in one statement. `observe` is the statement above, with a bound of one job.
select '{tenant}'::text, (seen.due > 0 or seen.parked) and not seen.paused,
       seen.parked or exists (select from {schema}.job_rows leased
                              where leased.state in ('assigned', 'running') and leased.lease_expires_at <= clock_timestamp())
from ({observe}) seen (due, oldest, paused, parked)

-- tenant_idle_check: `idle_check` of a tenant; no row where that has none
-- One of these for each tenant, all in one statement.
select '{tenant}'::text, seen.* from ({idle_check}) seen

-- counts: jobs by state, exact, whether the queue is paused, and halted targets up to 1,000; leased jobs are counted, the others come from the kept counts
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
-- Halted targets are walked from one to the next along job_rows_halting, however many jobs halt each.
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

-- fold_counts: adds at most `rows` changes to the kept counts; returns how many; skips what another node is folding
with folded as (
    delete from {schema}.count_changes
    where ctid = any (array(select ctid from {schema}.count_changes limit %(rows)s for update skip locked))
    returning *
)
update {schema}.job_counts counts
set enqueued = counts.enqueued + s.enqueued, pending = counts.pending + s.pending, queued = counts.queued + s.queued,
    paused = counts.paused + s.paused, succeeded = counts.succeeded + s.succeeded, failed = counts.failed + s.failed,
    canceled = counts.canceled + s.canceled
from (select count(*) as rows, sum(enqueued) as enqueued, sum(pending) as pending, sum(queued) as queued,
             sum(paused) as paused, sum(succeeded) as succeeded, sum(failed) as failed, sum(canceled) as canceled
      from folded) s
where s.rows > 0
returning s.rows
