-- Claims: how workers get jobs. `claim` is the whole idea, and the form that is sent nearly always. claim_with_limits and
-- claim_targets do more, and are sent only while jobs are met that need it.

-- claim: takes the first due jobs in claim order (priority, due time, id), at most `batch`, under one fresh token; none while the queue is paused
-- 1. `due` walks the priorities downwards, in each of them the index, and locks what it meets. It skips jobs that another
--    claim has locked, and never reads jobs that are not yet due. `limit 2000` bounds what the planner expects; `met` are
--    the first `scan`.
-- 2. `stopped` is the first of them that this form cannot judge: it has a target, or is of a kind in `stops`, whose limit is
--    not counted here. `placed` are the jobs before it: first those for idle workers, then those claimed ahead.
-- 3. `claimed` writes the claim; `counted` and `drafted` say so in the counts and in the log of events.
-- The row without an id, always the last, has in `rest` what else the claim met: jobs that it left to another form (`busy`),
-- and index entries that led to no job. Entries of jobs that are long gone stay in the index as long as somebody holds an
-- old snapshot; if a claim walked many, the next ones begin where it found the first job of each priority.
with now as materialized (
    select clock_timestamp() as at, %(workers)s::int[] as workers, cardinality(%(workers)s::int[]) as idle,
           pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass) as walked_before
),
due as (
    select first.place_in_table, first.id, first.priority, first.run_at, first.kind, first.target
    from {schema}.claimable_priorities levels cross join lateral (
        select job.ctid as place_in_table, job.id, job.priority, job.run_at, job.kind, job.target from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind
          and job.priority = levels.priority and job.run_at <= (select at from now)
        order by job.run_at, job.id limit 2000 for no key update skip locked) first
    where (select paused_at is null from {schema}.queue_state)
    limit 2000
),
met as materialized (
    select *, row_number() over (order by priority desc, run_at, id) as place
    from (select * from due limit %(scan)s) first_ones
),
{stopped},
placed as (
    select place_in_table, place from met
    where place < coalesce((select first_place from stopped), %(scan)s + 1)
    order by place limit %(batch)s
),
{claimed}
select id, kind, payload, attempt, max_attempts, forgiven, waited_seconds, worker, spent, target, rest from (
    select *, null as rest from claimed
  union all
    select null, null, null, null, null, null, null, null, null, null, null,
           jsonb_build_object('busy', busy, 'is_limited', coalesce(is_limited, false), 'walked', walked,
                              'firsts', case when walked > %(walked_max)s then {firsts} end)::text
    from (select coalesce((select beyond from stopped), 0) as busy, (select is_limited from stopped) as is_limited,
                 {walked} as walked) met_beside
    where busy > 0 or walked > %(walked_max)s) found
order by place

-- part stopped: the first job that the claim cannot judge: its place, how many jobs are not before it, and what it is
stopped as materialized (
    select place as first_place, (select count(*) from met) - place + 1 as beyond, target is null as is_limited
    from met where target is not null or kind = any (%(stops)s::text[]) order by place limit 1
)

-- part claimed: writes the claims of the jobs in `placed`, and counts and drafts them
-- They are locked, so they are found by their places in the table.
claimed as (
    update {schema}.job_rows job
    set state = case when placed.place <= now.idle then 'running' else 'assigned' end,
        worker = now.workers[placed.place],
        started_at = case when placed.place <= now.idle then now.at end,
        attempt = job.attempt + 1, claim_token = %(token)s, node = %(node)s,
        lease_expires_at = now.at + make_interval(secs => %(lease_seconds)s), heartbeat_at = now.at,
        finished_at = null, last_outcome = null, result = null, log = null, progress = null, progress_note = null
    from placed, now
    where job.ctid = placed.place_in_table
    returning placed.place, job.id, job.kind, job.payload::text as payload, job.attempt, job.max_attempts,
              job.forgiven, extract(epoch from now.at - job.run_at)::float8 as waited_seconds, job.worker,
              job.spent::text as spent, job.target
),
counted as (
    insert into {schema}.count_changes (queued) select -count(*) from claimed having count(*) > 0
),
drafted as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, workers, common)
    select case when ahead then 'job.assigned' else 'job.started' end, cardinality(array_agg(id)), array_agg(id), array[kind],
           array_agg(target) filter (where target is not null),
           case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end,
           case when ahead then array[null::int] else array_agg(worker) end, %(common)s::jsonb
    from (select *, worker is null as ahead from claimed) claimed group by ahead, kind, target is not null
)

-- part firsts: where in each priority the first job was that the claim met
(select jsonb_agg(jsonb_build_array(priority, run_at, id))
 from (select distinct on (priority) priority, run_at, id from met order by priority, run_at, id) first_of_each)

-- part walked: how many index entries the claim walked that led to no job
pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass) - (select walked_before from now) - (select count(*) from met)

-- claim_with_limits: as claim, and keeps to limits: for jobs of all kinds together (`most`) and of single kinds (`caps`); begins at marks, if there are any
-- Jobs of a kind of which as many are leased as may be are parked: they leave the index that claims walk until `unpark`
-- takes them back. Nothing is locked and nothing moved while no more jobs of any kind may be leased.
-- lock_caps and unpark come before it in the same transaction.
with recursive now as materialized (
    select clock_timestamp() as at, %(workers)s::int[] as workers, cardinality(%(workers)s::int[]) as idle,
           pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass) as walked_before
),
{levels},
due as (
    select first.place_in_table, first.id, first.priority, first.run_at, first.kind, first.target
    from levels cross join lateral (
        select job.ctid as place_in_table, job.id, job.priority, job.run_at, job.kind, job.target from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind
          and job.priority = levels.priority and job.run_at <= (select at from now)
          and (job.run_at, job.id) >= (levels.first_run_at, levels.first_id)
        order by job.run_at, job.id limit 2000 for no key update skip locked) first
    where (select paused_at is null from {schema}.queue_state)
    limit 2000
),
{room},
met as materialized (
    select *, row_number() over (order by priority desc, run_at, id) as place
    from (select * from due limit case (select free from room) when 0 then 0 else %(scan)s end) first_ones
),
{stopped},
fitting as materialized (select * from met where place < coalesce((select first_place from stopped), %(scan)s + 1)),
{parked},
placed as (
    select place_in_table, row_number() over (order by place) as place
    from fitting where id not in (select id from excess)
    order by fitting.place limit least((select free from room), %(batch)s)
),
{claimed}
select id, kind, payload, attempt, max_attempts, forgiven, waited_seconds, worker, spent, target, rest from (
    select *, null as rest from claimed
  union all
    select null, null, null, null, null, null, null, null, null, null, null,
           jsonb_build_object('aside', aside, 'busy', busy, 'is_limited', coalesce(is_limited, false), 'is_full', is_full, 'walked', walked,
                              'firsts', case when has_firsts then {firsts} end)::text
    from (select (select count(*) from parked) as aside,
                 coalesce((select beyond from stopped), 0) as busy, (select is_limited from stopped) as is_limited,
                 coalesce((select free from room) <= (select count(*) from claimed), false) as is_full,
                 {walked} as walked,
                 {walked} > %(walked_max)s or exists (select from marks) as has_firsts) met_beside
    where aside > 0 or busy > 0 or is_full or has_firsts) found
order by place

-- part levels: the distinct priorities of claimable jobs, highest first, and where in each of them a walk begins
-- As the view claimable_priorities, which it is without marks. A priority with a mark needs no probe.
marks as materialized (
    select priority, run_at - make_interval(secs => %(late_seconds)s) as run_at, id
    from unnest(%(mark_priorities)s::int[], %(mark_run_ats)s::timestamptz[], %(mark_ids)s::bigint[]) mark (priority, run_at, id)
),
ladder (priority) as (
    select 32768
  union all
    select coalesce((select lower.priority::int from {schema}.job_rows lower
                     where lower.state = 'queued' and not lower.parked and not lower.behind
                       and lower.priority < ladder.priority and lower.priority > coalesce(marked.priority, -32769)
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
    select case when %(most)s::int is not null
                then greatest(0, %(most)s::int - (select count(*)::int from {schema}.job_rows job
                                                  where job.state in ('assigned', 'running'))) end as free
)

-- part parked: parks the jobs in `fitting` that are more of their kind than may be leased
leased as materialized (  -- of the kinds with a limit that are in `fitting`
    select cap.kind, cap.most, (select count(*) from {schema}.job_rows job
                                where job.kind = cap.kind and job.state in ('assigned', 'running')) as number
    from unnest(%(cap_kinds)s::text[], %(caps)s::int[]) as cap (kind, most)
    where cap.kind in (select kind from fitting)
),
excess as materialized (
    select id from (
        select fitting.id, leased.most - leased.number as free,
               row_number() over (partition by fitting.kind order by fitting.priority desc, fitting.run_at, fitting.id) as nth
        from leased join fitting on fitting.kind = leased.kind) ranked
    where nth > free
),
parked as (
    update {schema}.job_rows job set parked = true from excess where job.id = excess.id returning job.id
)

-- lock_caps: makes claims that keep to caps wait for each other until they are committed, so that each counts what the one before it took
select pg_advisory_xact_lock(1836413798, hashtext('{schema_name}'))

-- unpark: gives the first parked jobs of each capped kind back to the claim, as many as may run, at most `batch` a kind; none while as many jobs of all kinds are leased as may be
-- Whoever sends it holds the lock of lock_caps. Returns their places.
with room as materialized (
    select cap.kind, cap.most - (select count(*) from {schema}.job_rows job
                                 where job.kind = cap.kind and job.state in ('assigned', 'running')) as free
    from unnest(%(cap_kinds)s::text[], %(caps)s::int[]) as cap (kind, most)
    where exists (select from {schema}.job_rows waiting where waiting.parked and waiting.kind = cap.kind)
),
bound as materialized (
    select case when %(most)s::int is not null and exists (select from room)
                then greatest(0, %(most)s::int - (select count(*)::int from {schema}.job_rows job
                                                  where job.state in ('assigned', 'running'))) end as free
),
ready as materialized (
    select first.id from room cross join lateral (
        select job.id from {schema}.job_rows job
        where job.parked and job.kind = room.kind
        order by job.priority desc, job.run_at, job.id
        limit least(room.free, %(batch)s, (select free from bound)) for no key update skip locked) first
    where room.free > 0 and (select paused_at is null from {schema}.queue_state)
)
update {schema}.job_rows job set parked = false from ready where job.id = ready.id
returning job.priority, job.run_at, job.id

-- unpark_uncapped: gives parked jobs of these kinds, which have no cap any more, back to the claim, at most `batch` a kind
with ready as materialized (
    select first.id from unnest(%(kinds)s::text[]) as uncapped (kind) cross join lateral (
        select job.id from {schema}.job_rows job
        where job.parked and job.kind = uncapped.kind
        order by job.priority desc, job.run_at, job.id
        limit %(batch)s for no key update skip locked) first
    where exists (select from {schema}.job_rows job where job.parked)
)
update {schema}.job_rows job set parked = false from ready where job.id = ready.id

-- parked_kinds: the kinds that have parked jobs; one probe each
with recursive walk (kind) as (
    (select job.kind from {schema}.job_rows job where job.parked order by job.kind limit 1)
  union all
    select (select job.kind from {schema}.job_rows job where job.parked and job.kind > walk.kind
            order by job.kind limit 1)
    from walk where walk.kind is not null
)
select kind from walk where kind is not null

-- first_places: where in each priority the first claimable job is, and how many index entries were walked that lead to no job; takes and locks none
with now as materialized (
    select clock_timestamp() as at, pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass) as walked_before
),
firsts as (
    select first.priority, first.run_at, first.id from {schema}.claimable_priorities levels cross join lateral (
        select job.priority, job.run_at, job.id from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind
          and job.priority = levels.priority and job.run_at <= (select at from now)
        order by job.run_at, job.id limit 1) first
)
select coalesce(jsonb_agg(jsonb_build_array(priority, run_at, id)), '[]')::text,
       (pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass) - (select walked_before from now))::float8
from firsts

-- claims_under: the jobs now leased under one token, in claim order: reads a claim back whose reply was lost
select id, kind, payload::text, attempt, max_attempts, forgiven,
       extract(epoch from heartbeat_at - run_at)::float8 as waited_seconds, worker, spent::text, target
from {schema}.job_rows
where state in ('assigned', 'running') and claim_token = %(token)s
order by priority desc, run_at, id

-- part put_back: the jobs in `back` (id, priority, run_at, kind, target) may be claimed again: neighbours that are alike in stretches, those with a target by themselves
put_back as (
    insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
    select priority, run_at, min(id), max(id), kind, target
    from (select id, priority, run_at, kind, target, case when target is not null then id end as alone,
                 id - row_number() over (partition by priority, run_at, kind, target order by id) as island
          from back) neighbour
    group by priority, run_at, kind, target, alone, island, id / 64
)
