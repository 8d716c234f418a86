-- Claims: how workers get jobs. `claim` is the whole idea, and the form that is sent nearly always. claim_with_limits and
-- claim_targets do more, and are sent only while jobs are met that need it.

-- claim: takes the first due jobs in claim order (priority, due time, id), at most `batch`, under one fresh token; none while the
-- queue is paused
-- 1. `due` walks the priorities downwards, in each of them the index of `ready`, and locks the stretches that it meets, at
--    most `stretches`. It skips those that another claim has locked, and never reads what is not yet due. `limit 2000`
--    bounds what the planner expects.
-- 2. `stopped` is the first stretch that this form cannot judge: it has a target, or is of a kind in `stops`, whose limit is
--    not counted here. `cut` are the stretches before it: their jobs up to `upto` are claimed, those from there to `stays_to`
--    stay. No job is read for that.
-- 3. `claimed` reads the jobs, in claim order; `taken`, `left_over` and `leased` move them from `ready` to `leases`; `counted`
--    and `drafted` say so in the counts and in the log of events. The first jobs are for the idle workers, and start.
-- The answer is one row of arrays; an array of one value stands for all, null for an array of nulls. Beside them it says what
-- else the claim met: stretches in all, those that it took jobs of (`used`: the next claim meets hardly more), those that it
-- left to another form (`busy`), and index entries that led to none.
-- Entries of stretches that are long gone stay in the index as long as somebody holds an old snapshot; if a claim walked
-- many, the next ones begin where it found the first job of each priority.
with now as materialized ({now}),
due as (
    select first.* from {schema}.claimable_priorities levels cross join lateral (
        select stretch.ctid as place_in_table, stretch.* from {schema}.ready stretch
        where stretch.priority = levels.priority and stretch.run_at <= (select at from now)
        order by stretch.run_at, stretch.first_id limit 2000 for update skip locked) first
    where (select paused_at is null from {schema}.queue_state)
    limit 2000
),
met as materialized (
    select *, row_number() over (order by priority desc, run_at, first_id) as nth
    from (select * from due limit %(stretches)s) first_ones
),
{stopped},
cut as materialized (
    select *, last_id as stays_to, least(last_id, first_id + %(batch)s - before - 1) as upto
    from (select *, coalesce(sum(last_id - first_id + 1) over earlier, 0)::bigint as before from met
          where nth < coalesce((select first_place from stopped), 1000000)
          window earlier as (order by nth rows between unbounded preceding and 1 preceding)) placed
    where before < %(batch)s
),
{claimed}
{answer},
       0 as aside, coalesce((select beyond from stopped), 0) as busy,
           coalesce((select is_limited from stopped), false) as is_limited,
       false as is_full, case when {walked} > %(walked_max)s then {firsts} end as firsts
from claimed

-- claim_one: as claim, for a single idle worker when nothing else is going on; returns whether another form has to judge, what it
-- walked, and what it claimed
-- It looks at the very first stretch alone. If that has a target, is of a kind in `stops`, or is not yet due while there are
-- stretches of lower priority, nothing is taken, and `claim` has to judge; so it must while the queue is paused. A claim pays
-- for each node of its plan: this one has few.
with now as materialized (
    select clock_timestamp() as at, {walked_so_far} as walked_before
),
first as materialized (
    select stretch.ctid as place_in_table, stretch.* from {schema}.ready stretch
    order by stretch.priority desc, stretch.run_at, stretch.first_id limit 1 for update skip locked
),
claimed as materialized (
    select job.id, first.kind, job.payload::text as payload, {this_attempt} as attempt, job.max_attempts, job.forgiven,
           extract(epoch from now.at - job.run_at)::float8 as waited_seconds, job.spent::text as spent, job.schedule,
           to_jsonb(job.scheduled_for) #>> '{}' as scheduled_for,
           {claimed_at} as claimed_at, now.at
    from now cross join first cross join lateral (select * from {schema}.job_rows one where one.id = first.first_id offset 0) job
    where first.run_at <= now.at and first.target is null and first.kind <> all (%(stops)s::text[])
      and (select paused_at is null from {schema}.queue_state)
),
taken as (
    delete from {schema}.ready stretch using first, claimed where stretch.ctid = first.place_in_table
),
left_over as (
    insert into {schema}.ready (priority, run_at, first_id, last_id, kind)
    select priority, run_at, first_id + 1, last_id, first.kind from first, claimed where last_id > first_id
),
leased as (
    insert into {schema}.leases (token, kind, node, claimed_at, expires_at, heartbeat_at, jobs, span, started, workers, started_at)
    select %(token)s::uuid, kind, %(node)s::text, at, at + make_interval(secs => %(lease_seconds)s::float8), at,
        int8multirange(int8range(id, id, '[]')), int8range(id, id, '[]'),
           array[id], array[%(worker)s::int], array[at]
    from claimed
),
drafted as (
    insert into {schema}.event_drafts (queued, type, job_ids, kinds, attempts, workers, common)
    select -1, 'job.started', array[id], array[kind], array[attempt], array[%(worker)s::int],
        jsonb_build_object('node', %(node)s::text)
    from claimed
)
select claimed.id is null and exists (
           select from first where run_at <= now.at
               or exists (select from {schema}.ready lower where lower.priority < first.priority)),
       {walked_so_far} - walked_before,
       claimed.id, kind, payload, attempt, max_attempts, forgiven, waited_seconds, spent, schedule, scheduled_for,
       extract(epoch from coalesce(claimed_at, now.at))::float8
from now left join claimed on true

-- part now: the moment of the claim, and the idle workers
select clock_timestamp() as at, %(workers)s::int[] as workers, cardinality(%(workers)s::int[]) as idle,
       {walked_so_far} as walked_before

-- part stopped: the first stretch that the claim cannot judge: its place, how many are not before it, and what it is
stopped as materialized (
    select nth as first_place, (select count(*) from met) - nth + 1 as beyond, target is null as is_limited
    from met where target is not null or kind = any (%(stops)s::text[]) order by nth limit 1
)

-- part claimed: reads the jobs of the stretches in `cut` that are claimed, leases them, counts and drafts them
-- `offset 0` keeps the order of the join: a plan made while there were hardly any jobs would read all jobs and look each up here.
members as materialized (
    select cut.kind, cut.target, job.id, row_number() over () as place
    from (select * from cut order by nth) cut cross join lateral generate_series(cut.first_id, cut.upto) as job (id)
),
claimed as materialized (
    select count(*)::int as number, array_agg(id) as ids,
           case when min(kind collate "C") = max(kind collate "C") then array[min(kind)] else array_agg(kind) end as kinds,
           array_agg(payload) as payloads,
           case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end as attempts,
           case when count(max_attempts) > 0 then array_agg(max_attempts) end as max_attempts,
           case when max(forgiven) > 0 then array_agg(forgiven) else array[0] end as forgiven,
           array_agg(waited_seconds) as waited_seconds,
           case when count(spent) > 0 then array_agg(spent) end as spent,
           case when count(target) > 0 then array_agg(target) end as targets,
           case when count(schedule) > 0 then array_agg(schedule) end as schedules,
           case when count(scheduled_for) > 0 then array_agg(scheduled_for) end as slots,
           extract(epoch from coalesce(max(claimed_at), (select at from now)))::float8 as claimed_epoch
    from (select job.id, members.kind, members.target, job.payload::text as payload, {this_attempt} as attempt, job.max_attempts,
                 job.forgiven, extract(epoch from now.at - job.run_at)::float8 as waited_seconds, job.spent::text as spent,
                 job.schedule, job.scheduled_for, {claimed_at} as claimed_at
          from now cross join members
          cross join lateral (select * from {schema}.job_rows one where one.id = members.id offset 0) job
          order by members.place) job
),
taken as (
    delete from {schema}.ready stretch using cut
    where stretch.ctid = cut.place_in_table and (cut.upto >= cut.first_id or cut.stays_to < cut.last_id)
),
left_over as (
    insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
    select priority, run_at, upto + 1, stays_to, kind, target from cut
    where upto < stays_to and (upto >= first_id or stays_to < last_id)
),
leased as (
    insert into {schema}.leases (token, kind, target, node, claimed_at, expires_at, heartbeat_at, jobs, span, started, workers,
        started_at)
    select %(token)s, part.kind, coalesce(part.target, ''), %(node)s, now.at, now.at + make_interval(secs => %(lease_seconds)s),
           now.at, part.jobs, range_merge(part.jobs), coalesce(begun.ids, '{}'), coalesce(begun.workers, '{}'),
               coalesce(begun.moments, '{}')
    from now cross join (
        select kind, target, range_agg(int8range(first_id, upto, '[]')) as jobs from cut where upto >= first_id
        group by kind, target) part
    left join lateral (
        select array_agg(members.id) as ids, array_agg(now.workers[members.place]) as workers,
            array_fill(now.at, array[count(*)::int]) as moments
        from members where now.idle > 0 and members.place <= now.idle
          and members.kind = part.kind and members.target is not distinct from part.target) begun on true
),
drafted as (
    insert into {schema}.event_drafts (queued, type, size, job_ids, kinds, targets, attempts, workers, common)
    select case logged.first when 1 then -number end, logged.type, logged.last - logged.first + 1, ids[logged.first:logged.last],
           case when cardinality(kinds) = 1 then kinds else kinds[logged.first:logged.last] end, targets[logged.first:logged.last],
           case when cardinality(attempts) = 1 then attempts else attempts[logged.first:logged.last] end,
           case logged.type when 'job.started' then now.workers[:logged.last] else array[null::int] end, %(common)s::jsonb
    from now cross join claimed
    cross join lateral (values ('job.started', 1, least(number, now.idle)), ('job.assigned', now.idle + 1, number))
        as logged (type, first, last)
    where logged.first <= logged.last
)

-- part answer: the columns of what was claimed, then how many stretches were met, of how many of those jobs were claimed, and how
-- many entries of the index led to none
select number, ids, kinds, payloads, attempts, max_attempts, forgiven, waited_seconds, spent, targets, schedules, slots,
    claimed_epoch,
       (select count(*) from met)::int as met, (select count(*) from cut where upto >= first_id)::int as used, {walked} as walked

-- part this_attempt: which attempt a claim makes; it is refused where nobody could write its end, in a row changed past its checks
job.attempt + 1 / (job.attempt between 0 and 1999999999)::integer

-- part firsts: where in each priority the first job was that the claim met
(select jsonb_agg(jsonb_build_array(priority, run_at, first_id))
 from (select distinct on (priority) priority, run_at, first_id from met order by priority, run_at, first_id) first_of_each)::text

-- part walked: how many index entries the claim walked that led to no stretch
({walked_so_far} - (select walked_before from now) - (select count(*) from met))

-- part walked_so_far: how many index entries this transaction has walked; one that the server knows to be dead is not counted by
-- itself, but its page is, as four entries
(pg_stat_get_xact_tuples_returned('{schema}.ready_order'::regclass)
 + 4 * pg_stat_get_xact_blocks_fetched('{schema}.ready_order'::regclass))

-- part claimed_at: when `job` was claimed, `now` being the clock; after a clock was put back, not before the job was made
-- A job that was made more than a day ahead was made by hand, and would put off all starts of its node.
greatest(now.at, case when job.created_at < now.at + interval '1 day' then job.created_at end)

-- claim_with_limits: as claim, and keeps to limits: for jobs of all kinds together (`most`) and of single kinds (`caps`); begins at
-- marks, if there are any
-- Jobs of a kind of which as many are leased as may be are parked: they leave the index that claims walk until `unpark`
-- takes them back. Nothing is locked and nothing moved while no more jobs of any kind may be leased.
-- lock_caps and unpark come before it in the same transaction.
with recursive now as materialized ({now}),
{levels},
{room},
{met_from_marks},
{stopped},
fitting as materialized (select * from met where nth < coalesce((select first_place from stopped), 1000000)),
{bounded},
cut as materialized (
    select *, case when fits < size then 'parked' end as room, {stays_to} from bounded
),
{set_aside},
{claimed}
{answer},
       (select coalesce(sum(number), 0) from set_aside)::bigint as aside, coalesce((select beyond from stopped), 0) as busy,
       coalesce((select is_limited from stopped), false) as is_limited,
       coalesce((select free from room) <= number, false) as is_full,
       case when {walked} > %(walked_max)s or exists (select from marks) then {firsts} end as firsts
from claimed

-- part met_from_marks: as `met` of claim; none while no more jobs may be leased
due as (
    select first.* from levels cross join lateral (
        select stretch.ctid as place_in_table, stretch.* from {schema}.ready stretch
        where stretch.priority = levels.priority and stretch.run_at <= (select at from now)
          and (stretch.run_at, stretch.first_id) >= (levels.first_run_at, levels.first_id)
        order by stretch.run_at, stretch.first_id limit 2000 for update skip locked) first
    where (select paused_at is null from {schema}.queue_state)
    limit 2000
),
met as materialized (
    select *, row_number() over (order by priority desc, run_at, first_id) as nth
    from (select * from due limit case (select free from room) when 0 then 0 else %(stretches)s end) first_ones
)

-- part levels: the distinct priorities of claimable jobs, highest first, and where in each of them a walk begins
-- As the view claimable_priorities, which it is without marks. A priority with a mark needs no probe.
marks as materialized (
    select priority, run_at - make_interval(secs => %(late_seconds)s) as run_at, id
    from unnest(%(mark_priorities)s::int[], %(mark_run_ats)s::timestamptz[], %(mark_ids)s::bigint[]) mark (priority, run_at, id)
),
ladder (priority) as (
    select 32768
  union all
    select coalesce((select lower.priority::int from {schema}.ready lower
                     where lower.priority < ladder.priority and lower.priority > coalesce(marked.priority, -32769)
                     order by lower.priority desc limit 1), marked.priority)
    from ladder cross join lateral (
        select max(priority) as priority from marks where marks.priority < ladder.priority) marked
    where ladder.priority is not null
),
levels as (
    select ladder.priority, coalesce(mark.run_at, '-infinity') as first_run_at, coalesce(mark.id, 0) as first_id
    from ladder left join marks mark on mark.priority = ladder.priority where ladder.priority < 32768
)

-- part room: how many more jobs of any kind may be leased; null = there is no such limit
room as materialized (
    select case when %(most)s::int is not null then greatest(0, %(most)s::int - {leased_of_all}) end as free
)

-- part bounded: how many jobs of each stretch in `fitting` its kind has room for, and up to which one they are claimed
limited as materialized (  -- of the kinds with a limit that are in `fitting`
    select cap.kind, cap.most - {leased_of_cap} as free
    from unnest(%(cap_kinds)s::text[], %(caps)s::int[]) as cap (kind, most)
    where cap.kind in (select kind from fitting)
),
sized as materialized (
    select fitting.*, last_id - first_id + 1 as size,
           case when limited.kind is null then last_id - first_id + 1
                else greatest(0, least(last_id - first_id + 1,
                    limited.free - coalesce(sum(last_id - first_id + 1) over earlier, 0)))
           end::bigint as fits
    from fitting left join limited on limited.kind = fitting.kind
    window earlier as (partition by fitting.kind order by nth rows between unbounded preceding and 1 preceding)
),
bounded as materialized (
    select sized.*, first_id - 1 + greatest(0,
        least(fits, least(%(batch)s, (select free from room)) - coalesce(sum(fits) over earlier, 0)))::bigint as upto
    from sized window earlier as (order by nth rows between unbounded preceding and 1 preceding)
)

-- part leased_of_all: how many jobs are in hand
(select coalesce(sum(upper(part) - lower(part)), 0)::int from {schema}.leases lease cross join lateral unnest(lease.jobs) part)

-- part leased_of_cap: how many jobs of the kind of `cap` are in hand
(select coalesce(sum(upper(part) - lower(part)), 0)::int
 from {schema}.leases lease cross join lateral unnest(lease.jobs) part where lease.kind = cap.kind)

-- part stays_to: up to which job a stretch in `bounded` stays claimable
-- One of which nothing is claimed is not cut: what stays of it would stand where it stands, and no order holds between what
-- the parts of a statement take away and what they put there.
case when upto < first_id and fits > 0 then last_id else first_id + fits - 1 end as stays_to

-- part set_aside: puts the jobs of stretches in `cut` beyond `stays_to` into the room where they wait
set_aside as (
    insert into {schema}.waiting (room, name, priority, run_at, first_id, last_id, kind, target)
    select room, case room when 'parked' then kind else target end, priority, run_at, stays_to + 1, last_id, kind, target
    from cut where stays_to < last_id
    returning last_id - first_id + 1 as number
)

-- part put_back: the jobs in `back` (id, priority, run_at, kind, target) may be claimed again: neighbours that are alike in
-- stretches, those with a target by themselves
put_back as (
    insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
    select priority, run_at, min(id), max(id), kind, target
    from (select id, priority, run_at, kind, target, case when target is not null then id end as alone,
                 id - row_number() over (partition by priority, run_at, kind, target order by id) as island
          from back) neighbour
    group by priority, run_at, kind, target, alone, island, id / 64
)

-- lock_caps: makes claims that keep to caps wait for each other until they are committed, so that each counts what the one before
-- it took
-- They may be many, so it waits for longer than settlements do.
select set_config('lock_timeout', %(lock_ms)s, true), {schema}.take_turn()

-- unpark: gives the first parked jobs of each capped kind back to the claim, as many as may run, at most `batch` a kind; none while
-- as many jobs of all kinds are leased as may be
-- Whoever sends it holds the lock of lock_caps. A stretch is cut where there is no more room. Returns the places.
with room as materialized (
    select cap.kind, cap.most - {leased_of_cap} as free
    from unnest(%(cap_kinds)s::text[], %(caps)s::int[]) as cap (kind, most)
    where exists (select from {schema}.waiting parked where parked.room = 'parked' and parked.name = cap.kind)
),
bound as materialized (
    select case when %(most)s::int is not null and exists (select from room)
                then greatest(0, %(most)s::int - {leased_of_all}) end as free
),
first as materialized (
    select stretch.*, least(room.free, %(batch)s, (select free from bound)) as wanted
    from room cross join lateral (
        select parked.ctid as place_in_table, parked.priority, parked.run_at, parked.first_id, parked.last_id, parked.kind,
            parked.target
        from {schema}.waiting parked
        where parked.room = 'parked' and parked.name = room.kind
        order by parked.priority desc, parked.run_at, parked.first_id
        limit least(room.free, %(batch)s, (select free from bound)) for update skip locked) stretch
    where room.free > 0 and (select paused_at is null from {schema}.queue_state)
),
cut as materialized (
    select *, least(last_id, first_id + wanted - before - 1) as upto
    from (select *, coalesce(sum(last_id - first_id + 1) over (
              partition by kind order by priority desc, run_at, first_id
              rows between unbounded preceding and 1 preceding), 0)::bigint as before from first) counted
    where before < wanted
),
taken as (delete from {schema}.waiting parked using cut where parked.ctid = cut.place_in_table),
left_over as (
    insert into {schema}.waiting (room, name, priority, run_at, first_id, last_id, kind, target)
    select 'parked', kind, priority, run_at, upto + 1, last_id, kind, target from cut where upto < last_id
)
insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
select priority, run_at, first_id, upto, kind, target from cut
returning priority, run_at, first_id

-- unpark_uncapped: gives parked jobs of these kinds, which have no cap any more, back to the claim, at most `batch` stretches a
-- kind
with first as materialized (
    select stretch.* from unnest(%(kinds)s::text[]) as uncapped (kind) cross join lateral (
        select parked.ctid as place_in_table, parked.priority, parked.run_at, parked.first_id, parked.last_id, parked.kind,
            parked.target
        from {schema}.waiting parked
        where parked.room = 'parked' and parked.name = uncapped.kind
        order by parked.priority desc, parked.run_at, parked.first_id
        limit %(batch)s for update skip locked) stretch
    where exists (select from {schema}.waiting parked where parked.room = 'parked')
),
taken as (delete from {schema}.waiting parked using first where parked.ctid = first.place_in_table)
insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
select priority, run_at, first_id, last_id, kind, target from first

-- parked_kinds: the kinds that have parked jobs; one probe each
with recursive walk (kind) as (
    (select parked.name from {schema}.waiting parked where parked.room = 'parked' order by parked.name limit 1)
  union all
    select (select parked.name from {schema}.waiting parked where parked.room = 'parked' and parked.name > walk.kind
            order by parked.name limit 1)
    from walk where walk.kind is not null
)
select kind from walk where kind is not null

-- first_places: where in each priority the first claimable job is, and how many index entries were walked that lead to no job;
-- takes and locks none
with now as materialized (
    select clock_timestamp() as at, {walked_so_far} as walked_before
),
firsts as (
    select first.priority, first.run_at, first.first_id from {schema}.claimable_priorities levels cross join lateral (
        select stretch.priority, stretch.run_at, stretch.first_id from {schema}.ready stretch
        where stretch.priority = levels.priority and stretch.run_at <= (select at from now)
        order by stretch.run_at, stretch.first_id limit 1) first
)
select coalesce(jsonb_agg(jsonb_build_array(priority, run_at, first_id)), '[]')::text,
       ({walked_so_far} - (select walked_before from now))::float8
from firsts

-- set_aside: ends those of the next jobs that no claim can take, and mends their rows; what each has become
select id, kind, target, attempt, ended_epoch, error from {schema}.set_aside(%(token)s, %(node)s, %(bound)s)

-- claims_under: the jobs now leased under one token, in claim order: reads a claim back whose reply was lost
select job.id, job.kind, job.payload::text, job.attempt + 1, job.max_attempts, job.forgiven,
       extract(epoch from held.heartbeat_at - job.run_at)::float8 as waited_seconds, held.worker, job.spent::text, job.target,
       job.schedule, job.scheduled_for, extract(epoch from {claimed_at})::float8 as claimed_epoch
from {schema}.in_hand held join {schema}.job_rows job on job.id = held.id
cross join lateral (select held.claimed_at as at) now
where held.token = %(token)s
order by job.priority desc, job.run_at, job.id
