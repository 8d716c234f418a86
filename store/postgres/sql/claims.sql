-- Claims: how workers get jobs. See `claim` first: it is the whole idea. The others add limits, marks and targets.

-- claim: takes the first due jobs in claim order (priority, due time, id), at most `batch`, under one fresh token; none while the queue is paused
-- `limit 2000` bounds what the planner expects; `batch` is what is taken.
-- At the first job with a target it stops, and says so: what those need is asked by claim_targets. So it does at the first of
-- a kind in `stops`, which has a limit that it does not reckon with.
-- Entries of jobs that are long gone stay in the index as long as somebody holds an old snapshot. If it came by many of
-- them it says so, and where in each priority the first job was; given these marks, it begins there.
-- What is between more{ and } is left out of claim_plain, which is for claims without marks and without limits: the
-- server takes an eighth less for a single job.
with recursive now as materialized (
    select clock_timestamp() as at, %(workers)s::int[] as workers, cardinality(%(workers)s::int[]) as idle,
           pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass) as walked_before
),
{levels},
bounded as (
    select due.place_in_table, due.id, due.priority, due.run_at, due.kind, due.target
    from levels cross join lateral (
        select job.ctid as place_in_table, job.id, job.priority, job.run_at, job.kind, job.target from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority and job.run_at <= (select at from now)
          /*more{*/ and (job.run_at, job.id) >= (levels.first_run_at, levels.first_id) /*}*/
        order by job.run_at, job.id limit 2000 for no key update skip locked) due
    where (select paused_at is null from {schema}.queue_state)
    limit 2000
),
/*more{*/
room as materialized (  -- for jobs of any kind, until as many are leased as may be; without any nothing is locked and nothing moved
    select case when %(most)s::int is not null
                then greatest(0, %(most)s::int - (select count(*)::int from {schema}.job_rows job
                                                  where job.state in ('assigned', 'running'))) end as free
),
/*}*/
met as materialized (
    select *, row_number() over (order by priority desc, run_at, id) as place
    from (select * from bounded limit /*more{*/ case (select free from room) when 0 then 0 else /*}*/ %(scan)s /*more{*/ end /*}*/) first_ones
),
stopped as materialized (  -- where the first of them stands, how many are not before it, and which of both it is
    select place as first_place, (select count(*) from met) - place + 1 as beyond, (target is null)::int as is_limited
    from met where target is not null or kind = any (%(stops)s::text[]) order by place limit 1
),
picked as materialized (select * from met where place < coalesce((select first_place from stopped), %(scan)s + 1)),
/*more{*/
leased as materialized (  -- what is in hand, of kinds with a limit that are among the first
    select cap.kind, cap.most, (select count(*) from {schema}.job_rows job
                                where job.kind = cap.kind and job.state in ('assigned', 'running')) as number
    from unnest(%(cap_kinds)s::text[], %(caps)s::int[]) as cap (kind, most)
    where cap.kind in (select kind from picked)
),
ranked as (
    select picked.id, leased.most - leased.number as free,
           row_number() over (partition by picked.kind order by picked.place) as place
    from leased join picked on picked.kind = leased.kind
),
excess as materialized (select id from ranked where place > free),
parked as (
    update {schema}.job_rows job set parked = true from excess where job.id = excess.id returning job.id
),
/*}*/
placed as (
    select place_in_table, row_number() over (order by place) as place
    from picked /*more{*/ where id not in (select id from excess) /*}*/
    order by picked.place limit /*more{*/ least((select free from room), /*}*/ %(batch)s /*more{*/ ) /*}*/
),
claimed as (
    update {schema}.job_rows job
    set state = case when placed.place <= now.idle then 'running' else 'assigned' end,
        worker = now.workers[placed.place],
        started_at = case when placed.place <= now.idle then now.at end,
        attempt = job.attempt + 1, claim_token = %(token)s, node = %(node)s,
        lease_expires_at = now.at + make_interval(secs => %(lease_seconds)s), heartbeat_at = now.at,
        finished_at = null, last_outcome = null, result = null, log = null, progress = null, progress_note = null
    from placed, now
    where job.ctid = placed.place_in_table  -- it is locked, so it stays where it is
    returning placed.place, job.id, job.kind, job.payload::text as payload, job.attempt, job.max_attempts,
              job.forgiven, extract(epoch from now.at - job.run_at)::float8 as waited_seconds, job.worker,
              job.spent::text as spent, null::text as target
),
noted as (
    insert into {schema}.count_changes (queued) select -count(*) from claimed having count(*) > 0
),
told as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, attempts, workers, common)
    select case when ahead then 'job.assigned' else 'job.started' end, cardinality(array_agg(id)), array_agg(id), array[kind],
           case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end,
           case when ahead then array[null::int] else array_agg(worker) end, %(common)s::jsonb
    from (select *, worker is null as ahead from claimed) claimed group by ahead, kind
)
select id, kind, payload, attempt, max_attempts, forgiven, waited_seconds, worker, spent, target from (
    select * from claimed
  union all  -- how many were parked, where it stopped, whether no more may be leased, what was come by, and why it stopped
    select null, null, null, null, aside, beyond, is_full, walked, (select is_limited from stopped),
           (select jsonb_agg(jsonb_build_array(priority, run_at, id))::text
            from (select distinct on (priority) priority, run_at, id from met order by priority, run_at, id) firsts
            where walked > %(walked_max)s /*more{*/ or exists (select from marks) /*}*/), null
    from (
        select /*more{*/ (select count(*) from parked)::int + /*}*/ 0 as aside, coalesce((select beyond from stopped), 0)::int as beyond,
               /*more{*/ coalesce((select free from room) <= (select count(*) from claimed), false)::int + /*}*/ 0 as is_full,
               (pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass)
                - (select walked_before from now) - (select count(*) from met))::float8 as walked) rest
    where aside > 0 or beyond > 0 or is_full > 0 or walked > %(walked_max)s /*more{*/ or exists (select from marks) /*}*/) found
order by place

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

-- first_places: where in each priority the first claimable job is, and how many entries of the index that came by for nothing; takes and locks none
with recursive now as materialized (
    select clock_timestamp() as at, pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass) as walked_before
),
{levels},
firsts as (
    select first.priority, first.run_at, first.id from levels cross join lateral (
        select job.priority, job.run_at, job.id from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority and job.run_at <= (select at from now)
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

-- part levels: the distinct priorities of claimable jobs downwards, and where in each of them to begin
-- The distinct priorities of claimable jobs downwards, one probe of the index each, so that jobs which are not yet due cost
-- nothing, however many there are; and where in each of them to begin. A priority with a mark needs no probe.
ladder (priority) as (
    select 32768
  union all
    select coalesce((select lower.priority::int from {schema}.job_rows lower
                     where lower.state = 'queued' and not lower.parked and not lower.behind
                       and lower.priority < ladder.priority /*more{*/ and lower.priority > coalesce(marked.priority, -32769) /*}*/
                     order by lower.priority desc limit 1) /*more{*/, marked.priority /*}*/)
    from ladder /*more{*/ cross join lateral (select max(priority) as priority from marks where marks.priority < ladder.priority) marked /*}*/
    where ladder.priority is not null
),
/*more{*/
marks as materialized (
    select priority, run_at - make_interval(secs => %(late_seconds)s) as run_at, id
    from unnest(%(mark_priorities)s::int[], %(mark_run_ats)s::timestamptz[], %(mark_ids)s::bigint[]) mark (priority, run_at, id)
),
/*}*/
levels as (
    select ladder.priority /*more{*/, coalesce(mark.run_at, '-infinity') as first_run_at, coalesce(mark.id, 0) as first_id /*}*/
    from ladder /*more{*/ left join marks mark on mark.priority = ladder.priority /*}*/ where ladder.priority < 32768
)
