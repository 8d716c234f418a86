-- The queue as a whole: what is due, when the next job will be, and counts.

-- observe: what a scaling decision is made of: due and claimable jobs up to `bound`, how long the first of them has waited, whether
-- any are parked, the room of the other nodes (and of those before this one by id), a number that changes with the first due job,
-- and how many more jobs may be leased
with recursive now as materialized (select clock_timestamp() as at),
{levels},
{due_jobs}
select {seen_of_due},
       case when %(most)s::int is not null
            then greatest(0, %(most)s::int - {leased_of_all}) end
from {room_of_others}

-- observe_line: as `observe`, and the first `rows` stretches in line that are due within `horizon`, in the order of claims: their
-- kinds, sizes, last jobs, and how long they have waited; and how many jobs may stand behind them
with recursive now as materialized (select clock_timestamp() as at),
{levels},
line as materialized (
    select first.*, levels.priority, extract(epoch
        from (select at from now) - greatest(first.run_at, timestamptz '0001-01-01'))::float8 as waited
    from levels cross join lateral (
        select stretch.kind, stretch.run_at, stretch.first_id, stretch.last_id, stretch.last_id - stretch.first_id + 1 as size
        from {schema}.ready stretch
        where stretch.priority = levels.priority and stretch.run_at <= (select at from now) + make_interval(secs => %(horizon)s)
          and (stretch.run_at, stretch.first_id) >= (levels.first_run_at, levels.first_id)
        order by stretch.run_at, stretch.first_id limit %(rows)s) first
    limit %(rows)s
),
{due_jobs}
select {seen_of_due},
       case when %(most)s::int is not null
            then greatest(0, %(most)s::int - {leased_of_all}) end,
       seen.kinds, seen.sizes, seen.last_ids, seen.waited,
       case when seen.stretches < %(rows)s then 0
            else greatest(0, (select kept.queued from {schema}.kept_counts kept) - seen.jobs) end::bigint
from {room_of_others}, (
    select array_agg(kind order by priority desc, run_at, first_id) as kinds,
           array_agg(size order by priority desc, run_at, first_id) as sizes,
           array_agg(last_id order by priority desc, run_at, first_id) as last_ids,
           array_agg(waited order by priority desc, run_at, first_id) as waited,
           count(*) as stretches, sum(size) as jobs
    from line) seen

-- part due_jobs: the first `bound` stretches that are due; a line may end before them, in jobs of higher priority that are due soon
due as materialized (
    select greatest(first.run_at, timestamptz '0001-01-01') as run_at, first.size
    from levels cross join lateral (
        select stretch.run_at, stretch.last_id - stretch.first_id + 1 as size from {schema}.ready stretch
        where stretch.priority = levels.priority and stretch.run_at <= (select at from now)
          and (stretch.run_at, stretch.first_id) >= (levels.first_run_at, levels.first_id)
        order by stretch.run_at, stretch.first_id limit %(bound)s) first
    limit %(bound)s
)

-- part seen_of_due: how many jobs of `due` there are, up to `bound`, how long the first has waited, and what else a decision needs
-- of the store
       least(%(bound)s::bigint, (select coalesce(sum(size), 0) from due))::int,
       coalesce((select extract(epoch from (select at from now) - min(run_at)) from due), 0)::float8,
       (select paused_at is not null from {schema}.queue_state),
       exists (select from {schema}.waiting where room = 'parked'),
       others.free, others.free_before, others.unhired, others.unhired_before,
       coalesce((select (extract(epoch from min(run_at)) * 1000000)::bigint from due), 0)

-- part room_of_others: what room the nodes but `me` have, and those of them before it by id
     (select coalesce(sum(room.free), 0)::int as free,
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
select extract(epoch from min(least(later.run_at, timestamptz '9999-12-31')) - (select at from now))::float8
from levels cross join lateral (
    select stretch.run_at from {schema}.ready stretch
    where stretch.priority = levels.priority and stretch.run_at > (select at from now)
    order by stretch.run_at, stretch.first_id limit 1) later

-- not_yet_due: counts queued jobs that are not yet due, those that are parked and those behind a target, each up to `bound`
with recursive now as materialized (select clock_timestamp() as at),
{levels}
select least(%(bound)s::bigint, coalesce((
        select sum(later.size) from levels cross join lateral (
            select stretch.last_id - stretch.first_id + 1 as size from {schema}.ready stretch
            where stretch.priority = levels.priority and stretch.run_at > (select at from now)
            order by stretch.run_at, stretch.first_id limit %(bound)s) later), 0))::int + (
    select coalesce(sum(counted.number), 0)::int from unnest(array['parked', 'behind']) as of (its_room) cross join lateral (
        select least(%(bound)s::bigint, coalesce(sum(size), 0)) as number from (
            select last_id - first_id + 1 as size from {schema}.waiting where room = its_room limit %(bound)s) stretch) counted)

-- waiting_kinds: how many of the first claimable jobs are of each kind: of those that are due and of those that are not yet,
-- `bound` stretches each
with recursive now as materialized (select clock_timestamp() as at),
{levels},
looked as materialized (
    (select due.kind, due.size from levels cross join lateral (
         select stretch.kind, stretch.last_id - stretch.first_id + 1 as size from {schema}.ready stretch
         where stretch.priority = levels.priority and stretch.run_at <= (select at from now)
           and (stretch.run_at, stretch.first_id) >= (levels.first_run_at, levels.first_id)
         order by stretch.run_at, stretch.first_id limit %(bound)s) due
     limit %(bound)s)
  union all
    (select later.kind, later.size from levels cross join lateral (
         select stretch.kind, stretch.last_id - stretch.first_id + 1 as size from {schema}.ready stretch
         where stretch.priority = levels.priority and stretch.run_at > (select at from now)
         order by stretch.run_at, stretch.first_id limit %(bound)s) later
     limit %(bound)s)
)
select kind, sum(size)::bigint from looked group by kind

-- work_ahead: how many jobs nodes are wanted for: in hand, due, and due within the horizon
select {schema}.nodes_desired(1, %(horizon)s)

-- idle_check: whether only a hint or the passing of time can make a job claimable; whether jobs are due; seconds until the next one
-- is. No row if the node `me` is not known
-- A node with leased jobs may retry them later, or pass their targets on, without a hint. A transaction that is writing jobs
-- may have left the hint to another one, which commits before it: it shows by the lock that every writer of the table holds.
with now as materialized (select clock_timestamp() as at),
levels as (select priority from {schema}.claimable_priorities),
seen as materialized (
    select (select paused_at is null from {schema}.queue_state) and exists (
               select from levels cross join lateral (
                   select 1 from {schema}.ready stretch
                   where stretch.priority = levels.priority and stretch.run_at <= (select at from now)
                   order by stretch.run_at, stretch.first_id limit 1) first) as due,
           (select extract(epoch from min(least(later.run_at, timestamptz '9999-12-31')) - (select at from now))::float8
            from levels cross join lateral (
                select stretch.run_at from {schema}.ready stretch
                where stretch.priority = levels.priority and stretch.run_at > (select at from now)
                order by stretch.run_at, stretch.first_id limit 1) later) as next_due_seconds
)
select not (due
            or exists (select from {schema}.leases where not isempty(jobs))
            or exists (select from {schema}.waiting where room = 'parked')
            or exists (select from pg_locks writing
                       where writing.locktype = 'relation' and writing.relation = '{schema}.job_rows'::regclass
                         and writing.database = (select oid from pg_database where datname = current_database())
                         and writing.mode = 'RowExclusiveLock' and writing.pid is distinct from pg_backend_pid())),
       due, next_due_seconds
from seen where exists (select from {schema}.nodes node where node.id = %(me)s)

-- hint_channel: where this store's hints are heard
select name from {schema}.hint_channel

-- tenant_activity: whether there is anything to do for a tenant: due jobs that may be claimed, or parked ones; leases that ran out
-- One of these for each tenant, all in one statement. `observe` is the statement above, with a bound of one job.
select '{tenant}'::text, (seen.due > 0 or seen.parked) and not seen.paused,
       seen.parked or exists (select from {schema}.leases
                              where expires_at <= clock_timestamp() and not isempty(jobs))
from ({observe}) seen (due, oldest, paused, parked)

-- tenant_idle_check: `idle_check` of a tenant; no row where that has none
-- One of these for each tenant, all in one statement.
select '{tenant}'::text, seen.* from ({idle_check}) seen

-- counts: jobs by state, exact, whether the queue is paused, and halted targets up to 1,000; leased jobs are counted, the others
-- come from the kept counts
with recursive leased as ({in_hand_by_state}),
-- Halted targets are walked from one to the next along job_rows_halting, however many jobs halt each.
halted (target, number) as (
    (select job.target, 1 from {schema}.job_rows job
     where job.target is not null and (job.rest = 'paused' or job.rest = 'failed' and job.cleared_at is null)
     order by job.target limit 1)
  union all
    select next.target, halted.number + 1
    from halted cross join lateral (
        select job.target from {schema}.job_rows job
        where job.target > halted.target and (job.rest = 'paused' or job.rest = 'failed' and job.cleared_at is null)
        order by job.target limit 1) next
    where halted.number < 1000
)
select kept.enqueued, kept.pending, kept.queued, leased.assigned, leased.running,
       kept.paused, kept.succeeded, kept.failed, kept.canceled,
       q.paused_at, q.paused_by, (select count(*) from halted)::int
from {schema}.kept_counts kept, leased, {schema}.queue_state q

-- failing_kinds: kinds of which jobs failed within `seconds`: how many of the latest `bound` that ended failed, and how many ended
-- Walks the endings from kind to kind, along endings_order. An ending may name a job that went on since: the failed ones, of
-- which at most `bound` are met for each kind, are asked themselves.
with recursive since as materialized (select clock_timestamp() - make_interval(secs => %(seconds)s) as at),
failed_kinds (kind, number) as (
    (select ending.kind, 1 from {schema}.endings ending
     where not ending.stale and ending.state = 'failed' order by ending.kind limit 1)
  union all
    select further.kind, failed_kinds.number + 1
    from failed_kinds cross join lateral (
        select ending.kind from {schema}.endings ending
        where not ending.stale and ending.state = 'failed' and ending.kind > failed_kinds.kind
        order by ending.kind limit 1) further
    where failed_kinds.number < %(kinds)s
)
select failed_kinds.kind, count(*) filter (where latest.failed)::int, count(*)::int
from failed_kinds cross join lateral (
    select ended.failed from (
        (select true as failed, member.at from (
             select member.id, ending.at from (
                 select * from {schema}.endings ending
                 where not ending.stale and ending.state = 'failed' and ending.kind = failed_kinds.kind
                   and ending.at > (select at from since)
                 order by ending.at desc, ending.id desc limit %(bound)s) ending
             cross join lateral unnest(ending.jobs) as stretch (ids)
             cross join lateral generate_series(lower(stretch.ids), upper(stretch.ids) - 1) as member (id)
             order by ending.at desc, member.id desc limit %(bound)s) member
         where (select job.rest = 'failed' and job.cleared_at is null from {schema}.job_rows job where job.id = member.id))
      union all
        (select false, ending.at from (
             select * from {schema}.endings ending
             where not ending.stale and ending.state = 'succeeded' and ending.kind = failed_kinds.kind
               and ending.at > (select at from since)
             order by ending.at desc, ending.id desc limit %(bound)s) ending
         cross join lateral unnest(ending.jobs) as stretch (ids)
         cross join lateral generate_series(lower(stretch.ids), upper(stretch.ids) - 1)
         order by ending.at desc limit %(bound)s)) ended
    order by ended.at desc limit %(bound)s) latest
group by failed_kinds.kind
having count(*) filter (where latest.failed) > 0
order by failed_kinds.kind

-- part in_hand_by_state: how many jobs are in hand, by what is known of their start
select coalesce(sum(number - running), 0)::bigint as assigned, coalesce(sum(running), 0)::bigint as running
from {schema}.leases lease cross join lateral (
    select (select coalesce(sum(upper(part) - lower(part)), 0) from unnest(lease.jobs) part) as number,
           (select count(*) from unnest(lease.started) begun (id) where lease.jobs @> begun.id) as running) counted

-- fold_counts: adds at most `rows` changes to the kept counts; returns how many; none while another node is folding
-- Whoever folds holds the row of the counts, so that no change has to be locked: that would log as much as its deletion.
with alone as materialized (select true as is_so from {schema}.job_counts for update skip locked),
folded as (
    delete from {schema}.count_changes
    where ctid = any (array(select ctid from {schema}.count_changes where (select is_so from alone) limit %(rows)s))
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
