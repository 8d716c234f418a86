-- Claims where jobs have targets, and passing a target on. schema/2_targets.sql says what a holder is.

-- claim_targets: as claim_with_limits, where there may be jobs with a target
-- 1. `due` and `met` are as in claim. `seen` has one row for each target among them, and what else its first job must know:
--    who holds the target, whether jobs halt it, whether an earlier job of it is in the hands of another claim.
-- 2. `decided` chooses at most one job of each target. `fitting` are these and the jobs without a target.
-- 3. `held_from_now_on` says who holds each target when this claim is done. The other jobs of the target are set behind the
--    holder, out of the way of claims.
-- It waits for no lock but that of a claim which takes the same free target: those follow each other in order.
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
met as materialized (select * from due limit case (select free from room) when 0 then 0 else %(scan)s end),
of_targets as materialized (
    select *, row_number() over (partition by target order by priority desc, run_at, id) as nth
    from met where target is not null
),
seen as materialized (  -- found once for each target, by the first of its jobs
    select mine.*, known.target is not null as is_known, holder.job_id as holder_id, holder.reserved,
           overtaken.id as overtaken_id, halts.id as halts_id, halting.id as halting_id, intruder.id as intruder_id, earlier.id as earlier_id
    from of_targets mine
    left join lateral (
        select one.target, one.reserved from {schema}.target_holders one
        where mine.nth = 1 and one.target = mine.target) known on true
    left join lateral (  -- comes before this job and was not met, so another claim has it in hand
        select job.id from levels cross join lateral (
            select job.id from {schema}.job_rows job
            where job.state = 'queued' and not job.parked and not job.behind and job.target = mine.target
              and job.priority = levels.priority and job.run_at <= (select at from now)
              and (levels.priority > mine.priority or (job.run_at, job.id) < (mine.run_at, mine.id))
            order by job.run_at, job.id limit 1) job
        where mine.nth = 1 and known.reserved is distinct from false and levels.priority >= mine.priority limit 1) earlier on true
    left join lateral (  -- left to the claim that has the earlier job
        select one.job_id, one.reserved from {schema}.target_holders one
        where mine.nth = 1 and one.target = mine.target and (earlier.id is null or not known.reserved)
        for update skip locked) holder on true
    left join lateral (  -- reserved the target, but comes after this job and is not yet claimed
        select job.id from {schema}.job_rows job
        where holder.reserved and job.id = holder.job_id and job.state = 'queued'
          and (-job.priority::int, job.run_at, job.id) > (-mine.priority::int, mine.run_at, mine.id)
        for no key update skip locked) overtaken on true
    left join lateral (
        select job.id from {schema}.job_rows job
        where mine.nth = 1 and known.target is null and job.target = mine.target
          and (job.state = 'paused' or job.state = 'failed' and job.cleared_at is null)
        order by job.id limit 1) halts on true
    left join lateral (  -- locked, so that it goes on halting
        select job.id from {schema}.job_rows job
        where halts.id is not null and job.target = mine.target
          and (job.state = 'paused' or job.state = 'failed' and job.cleared_at is null)
        order by job.id limit 1 for no key update skip locked) halting on true
    left join lateral (  -- is leased although another job has the target: somebody changed rows by hand
        select job.id from {schema}.job_rows job
        where mine.nth = 1 and (known.target is null or holder.job_id is not null)
          and job.target = mine.target and job.state in ('assigned', 'running') and job.id is distinct from holder.job_id
        limit 1 for no key update skip locked) intruder on true
),
gathered as (  -- the same for all jobs of the target
    select place_in_table, id, priority, run_at, kind, target, nth,
           count(*) over its_target as number, max(id) filter (where nth = 1) over its_target as first_id,
           bool_or(is_known) over its_target as is_known, max(holder_id) over its_target as holder_id,
           bool_or(reserved) over its_target as reserved, max(overtaken_id) over its_target as overtaken_id,
           max(halts_id) over its_target as halts_id, max(halting_id) over its_target as halting_id,
           max(intruder_id) over its_target as intruder_id, max(earlier_id) over its_target as earlier_id
    from seen window its_target as (partition by target)
),
decided as materialized (  -- chosen_id null = no job of the target
    select *, case when intruder_id is not null or halts_id is not null or is_known and holder_id is null then null
                   when (holder_id is null or reserved) and earlier_id is not null then null
                   when holder_id is null or overtaken_id is not null then first_id
                   when bool_or(id = holder_id) over (partition by target) then holder_id end as chosen_id
    from gathered
),
fitting as materialized (
    select place_in_table, id, priority, run_at, kind, target, null::bigint as holder_id from met where target is null
  union all
    select place_in_table, id, priority, run_at, kind, target, holder_id from decided where id = chosen_id
),
{parked},
chosen as materialized (
    select * from fitting where id not in (select id from excess)
    order by priority desc, run_at, id limit least(%(batch)s, (select free from room))
),
held_from_now_on as materialized (
    select target, first_id, number, holder_id as before_id, reserved as was_reserved,
           case when intruder_id is not null or halts_id is not null then coalesce(intruder_id, halting_id)
                when chosen_id in (select id from chosen) or chosen_id in (select id from excess) then chosen_id
                else holder_id end as job_id,
           case when intruder_id is not null or chosen_id in (select id from chosen) then false
                when holder_id is null or chosen_id <> holder_id and chosen_id in (select id from excess) then true
                else reserved end as reserved
    from decided where nth = 1
),
newly_held as (
    insert into {schema}.target_holders (target, job_id, reserved)
    select target, job_id, reserved from held_from_now_on where before_id is null and job_id is not null order by target
    on conflict (target) do nothing returning target
),
moved as (  -- also where jobs are only set behind, so that a transaction with an older snapshot notices
    update {schema}.target_holders holder set job_id = held.job_id, reserved = held.reserved
    from held_from_now_on held
    where holder.target = held.target and held.before_id is not null
      and ((held.job_id, held.reserved) <> (held.before_id, held.was_reserved)
           or held.number > 1 or held.first_id <> held.job_id)
),
set_behind as (
    update {schema}.job_rows job set behind = true, parked = false
    from (
        select id from decided
        where (holder_id is not null or target in (select target from newly_held))
          and id is distinct from chosen_id and id is distinct from holder_id
      union
        select overtaken_id from decided
        where nth = 1 and overtaken_id is not null
          and (chosen_id in (select id from chosen) or chosen_id in (select id from excess))) late
    where job.id = late.id returning job.id
),
placed as materialized (
    select place_in_table, row_number() over (order by priority desc, run_at, id) as place
    from chosen where target is null or holder_id is not null or target in (select target from newly_held)
),
{claimed}
select id, kind, payload, attempt, max_attempts, forgiven, waited_seconds, worker, spent, target, rest from (
    select *, null as rest from claimed
  union all
    select null, null, null, null, null, null, null, null, null, null, null,
           jsonb_build_object('aside', aside, 'busy', busy, 'is_full', is_full, 'walked', walked,
                              'firsts', case when has_firsts then {firsts} end)::text
    from (select (select count(*) from parked) + (select count(*) from set_behind) as aside,
                 (select count(*) from chosen) - (select count(*) from placed)
                 + (select count(*) from decided where chosen_id is null and holder_id is null
                    and target not in (select target from newly_held)) as busy,
                 coalesce((select free from room) <= (select count(*) from claimed), false) as is_full,
                 {walked} as walked,
                 {walked} > %(walked_max)s or exists (select from marks) as has_firsts) met_beside
    where aside > 0 or busy > 0 or is_full or has_firsts) found
order by place

-- lock_targets: locks the rows of these targets' holders, in order, before any of their jobs is settled
select target from {schema}.target_holders where target = any (%(targets)s::text[]) order by target for update

-- lock_targets_of: locks the holders' rows of these jobs' targets, in order, before any of the jobs is acted on
select target from {schema}.target_holders
where target in (select job.target from {schema}.job_rows job where job.id = any (%(ids)s::bigint[]) and job.target is not null)
order by target for update

-- hand_over: passes on those of these targets whose holder has ended; a statement of its own, so that it sees what was committed before it
select {schema}.hand_over(%(targets)s::text[], %(ring)s)

-- turns_of: the place of the job of each target whose turn it is
select job.priority, job.run_at, job.id from unnest(%(targets)s::text[]) as wanted (target) cross join lateral (
    select job.priority, job.run_at, job.id from {schema}.job_rows job
    where job.target = wanted.target and job.state = 'queued' and not job.parked and not job.behind
    order by job.priority desc, job.run_at, job.id limit 1) job

-- halted_targets: how many targets paused and failed jobs halt, of the first `bound` such jobs, and the first targets
with halted as materialized (
    select distinct target from (
        select target from {schema}.job_rows
        where target is not null and (state = 'paused' or state = 'failed' and cleared_at is null)
        order by target, id limit %(bound)s) one
)
select count(*), coalesce((array_agg(target order by target))[:%(named)s], '{}'::text[]) from halted

-- target: the job that holds a target, or halts it while none holds it, and the waiting jobs: how many, up to `bound`, and the first
select holder.job_id, coalesce(holder.reserved, true),
       (select count(*) from (
            select from {schema}.job_rows job where job.behind and job.target = %(target)s limit %(bound)s) behind)::int,
       array(select job.id from {schema}.job_rows job where job.behind and job.target = %(target)s
             order by job.priority desc, job.run_at, job.id limit %(shown)s)
from (select one.job_id, one.reserved from {schema}.target_holders one where one.target = %(target)s
    union all
      (select job.id, true from {schema}.job_rows job
       where job.target = %(target)s and (job.state = 'paused' or job.state = 'failed' and job.cleared_at is null)
         and not exists (select from {schema}.target_holders one where one.target = %(target)s)
       order by job.id limit 1)) holder
