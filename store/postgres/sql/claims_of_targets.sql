-- Claims where jobs have targets, and passing a target on. schema/3_targets.sql says what a holder is. A job with a target
-- stands by itself, so its stretch is the job.

-- claim_targets: as claim_with_limits, where there may be jobs with a target
-- 1. `due` and `met` are as in claim. `seen` has one row for each target among them, and what else its first job must know:
--    who holds the target, whether jobs halt it, whether an earlier job of it is in the hands of another claim.
-- 2. `decided` chooses at most one job of each target. `fitting` are these and the stretches without a target.
-- 3. `held_from_now_on` says who holds each target when this claim is done. The other jobs of the target are set behind the
--    holder, out of the way of claims.
-- It waits for no lock but that of a claim which takes the same free target: those follow each other in order.
with recursive now as materialized ({now}),
{levels},
{room},
{met_from_marks},
of_targets as materialized (
    select *, first_id as id, row_number() over (partition by target order by nth) as turn from met where target is not null
),
seen as materialized (  -- found once for each target, by the first of its jobs
    select mine.*, known.target is not null as is_known, holder.job_id as holder_id, holder.reserved,
           coalesce(overtaken.id, parked.id) as overtaken_id, overtaken.place_in_table as overtaken_place,
               parked.place_in_table as parked_place,
           halts.id as halts_id, halting.id as halting_id, intruder.id as intruder_id, earlier.id as earlier_id
    from of_targets mine
    left join lateral (
        select one.target, one.reserved from {schema}.target_holders one
        where mine.turn = 1 and one.target = mine.target) known on true
    left join lateral (  -- comes before this job and was not met, so another claim has it in hand
        select one.first_id as id from levels cross join lateral (
            select stretch.first_id from {schema}.ready stretch
            where stretch.target = mine.target and stretch.priority = levels.priority and stretch.run_at <= (select at from now)
              and (levels.priority > mine.priority or (stretch.run_at, stretch.first_id) < (mine.run_at, mine.id))
            order by stretch.run_at, stretch.first_id limit 1) one
        where mine.turn = 1 and known.reserved is distinct from false and levels.priority >= mine.priority limit 1) earlier on true
    left join lateral (  -- left to the claim that has the earlier job
        select one.job_id, one.reserved from {schema}.target_holders one
        where mine.turn = 1 and one.target = mine.target and (earlier.id is null or not known.reserved)
        for update skip locked) holder on true
    left join lateral (  -- reserved the target, but comes after this job and is not yet claimed
        select stretch.first_id as id, stretch.ctid as place_in_table from {schema}.ready stretch
        where holder.reserved and stretch.target = mine.target and stretch.first_id = holder.job_id
          and (-stretch.priority::int, stretch.run_at, stretch.first_id) > (-mine.priority::int, mine.run_at, mine.id)
        for update skip locked) overtaken on true
    left join lateral (  -- the same of one that is parked
        select waits.first_id as id, waits.ctid as place_in_table
        from {schema}.job_rows job join {schema}.waiting waits
          on waits.room = 'parked' and waits.name = job.kind and waits.priority = job.priority
             and waits.run_at = job.run_at and waits.first_id = job.id
        where holder.reserved and job.id = holder.job_id
          and (-job.priority::int, job.run_at, job.id) > (-mine.priority::int, mine.run_at, mine.id)
        for update of waits skip locked) parked on true
    left join lateral (
        select job.id from {schema}.job_rows job
        where mine.turn = 1 and known.target is null and job.target = mine.target
          and (job.rest = 'paused' or job.rest = 'failed' and job.cleared_at is null)
        order by job.id limit 1) halts on true
    left join lateral (  -- locked, so that it goes on halting
        select job.id from {schema}.job_rows job
        where halts.id is not null and job.target = mine.target
          and (job.rest = 'paused' or job.rest = 'failed' and job.cleared_at is null)
        order by job.id limit 1 for no key update skip locked) halting on true
    left join lateral (  -- is leased although another job has the target: somebody changed rows by hand
        select lower(lease.jobs) as id from {schema}.leases lease
        where mine.turn = 1 and (known.target is null or holder.job_id is not null)
          and lease.target = mine.target and lease.jobs <> '{}' and not coalesce(lease.jobs @> holder.job_id, false)
        limit 1) intruder on true
),
gathered as (  -- the same for all jobs of the target
    select place_in_table, id, priority, run_at, first_id, last_id, kind, target, nth, turn,
           count(*) over its_target as number, max(id) filter (where turn = 1) over its_target as first_of_target,
           bool_or(is_known) over its_target as is_known, max(holder_id) over its_target as holder_id,
           bool_or(reserved) over its_target as reserved, max(overtaken_id) over its_target as overtaken_id,
           max(halts_id) over its_target as halts_id, max(halting_id) over its_target as halting_id,
           max(intruder_id) over its_target as intruder_id, max(earlier_id) over its_target as earlier_id
    from seen window its_target as (partition by target)
),
decided as materialized (  -- chosen_id null = no job of the target
    select *, case when intruder_id is not null or halts_id is not null or is_known and holder_id is null then null
                   when (holder_id is null or reserved) and earlier_id is not null then null
                   when holder_id is null or overtaken_id is not null then first_of_target
                   when bool_or(id = holder_id) over (partition by target) then holder_id end as chosen_id
    from gathered
),
fitting as materialized (
    select place_in_table, priority, run_at, first_id, last_id, kind, target, nth, null::bigint as holder_id from met
        where target is null
  union all
    select place_in_table, priority, run_at, first_id, last_id, kind, target, nth, holder_id from decided where id = chosen_id
),
{bounded},
held_from_now_on as materialized (
    select one.target, first_of_target, number, holder_id as before_id, reserved as was_reserved,
           case when intruder_id is not null or halts_id is not null then coalesce(intruder_id, halting_id)
                when chosen.is_claimed or chosen.is_excess then chosen_id
                else holder_id end as job_id,
           case when intruder_id is not null or chosen.is_claimed then false
                when holder_id is null or chosen_id <> holder_id and chosen.is_excess then true
                else reserved end as reserved,
           coalesce(chosen.is_claimed or chosen.is_excess, false) as goes_on
    from decided one left join lateral (
        select bounded.upto >= bounded.first_id as is_claimed, bounded.fits = 0 as is_excess
        from bounded where bounded.target = one.target) chosen on true
    where turn = 1
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
           or held.number > 1 or held.first_of_target <> held.job_id)
),
ours as materialized (  -- targets of which this claim says who holds them
    select target, goes_on from held_from_now_on
    where before_id is not null or target in (select target from newly_held)
),
cut as materialized (
    select place_in_table, priority, run_at, first_id, last_id, kind, target, nth,
           case when fits < size then 'parked' end as room, upto, {stays_to}
    from bounded where target is null or target in (select target from ours)
  union all
    select place_in_table, priority, run_at, first_id, last_id, kind, target, nth, 'behind', first_id - 1, first_id - 1
    from decided where target in (select target from ours) and id is distinct from chosen_id
      and (id is distinct from holder_id or target in (select target from ours where goes_on))
  union all  -- it was not met itself
    select overtaken_place, late.priority, late.run_at, late.first_id, late.last_id, late.kind, late.target, null, 'behind',
           late.first_id - 1, late.first_id - 1
    from seen join {schema}.ready late on late.ctid = seen.overtaken_place
    where seen.overtaken_id not in (select id from decided) and seen.target in (select target from ours where goes_on)
),
no_longer_parked as (
    delete from {schema}.waiting late using seen
    where late.ctid = seen.parked_place and seen.target in (select target from ours where goes_on)
    returning late.priority, late.run_at, late.first_id, late.last_id, late.kind, late.target
),
set_behind as (
    insert into {schema}.waiting (room, name, priority, run_at, first_id, last_id, kind, target)
    select 'behind', target, priority, run_at, first_id, last_id, kind, target from no_longer_parked
    returning last_id - first_id + 1 as number
),
{set_aside},
{claimed}
{answer},
       ((select coalesce(sum(number), 0) from set_aside) + (select count(*) from set_behind))::bigint as aside,
       (select count(*) from bounded where target is not null and upto >= first_id and target not in (select target from ours))
       + (select count(*) from decided where chosen_id is null and holder_id is null
          and target not in (select target from newly_held)) as busy,
       false as is_limited,
       coalesce((select free from room) <= number, false) as is_full,
       case when {walked} > %(walked_max)s or exists (select from marks) then {firsts} end as firsts
from claimed

-- lock_targets: locks the rows of these targets' holders, in order, before any of their jobs is settled
select target from {schema}.target_holders where target = any (%(targets)s::text[]) order by target for update

-- held_up: which of these jobs cannot be written about now, since an open transaction of somebody else holds the job, or the holder
-- of its target, if that is given
-- The locks that it takes end with it.
with free as materialized (
    select target from {schema}.target_holders where target = any (%(targets)s::text[]) order by target for update skip locked
),
open as materialized (
    select job.id from {schema}.job_rows job
    where job.id = any (%(ids)s::bigint[])
      and not exists (select from {schema}.target_holders holder
                      where holder.target = job.target and holder.target = any (%(targets)s::text[])
                        and holder.target <> all (array(select target from free)))
    order by job.id for no key update of job skip locked
)
select job.id from {schema}.job_rows job
where job.id = any (%(ids)s::bigint[]) and job.id <> all (array(select id from open))

-- bound_waits: for how long the statements of this transaction wait for a lock
select set_config('lock_timeout', %(lock_ms)s, true)

-- lock_targets_of: locks the holders' rows of these jobs' targets, in order, before any of the jobs is acted on
select target from {schema}.target_holders
where target in (select job.target from {schema}.job_rows job where job.id = any (%(ids)s::bigint[]) and job.target is not null)
order by target for update

-- hand_over: passes on those of these targets whose holder has ended; a statement of its own, so that it sees what was committed
-- before it
select {schema}.hand_over(%(targets)s::text[], %(ring)s)

-- turns_of: the place of the job of each target whose turn it is
select turn.* from unnest(%(targets)s::text[]) as wanted (target) cross join lateral (
    select stretch.priority, stretch.run_at, stretch.first_id from {schema}.ready stretch
    where stretch.target = wanted.target
    order by stretch.priority desc, stretch.run_at, stretch.first_id limit 1) turn

-- halted_targets: how many targets paused and failed jobs halt, of the first `bound` such jobs, and the first targets
with halted as materialized (
    select distinct target from (
        select target from {schema}.job_rows
        where target is not null and (rest = 'paused' or rest = 'failed' and cleared_at is null)
        order by target, id limit %(bound)s) one
)
select count(*), coalesce((array_agg(target order by target))[:%(named)s], '{}'::text[]) from halted

-- target: the job that holds a target, or halts it while none holds it, and the waiting jobs: how many, up to `bound`, and the
-- first
select holder.job_id, coalesce(holder.reserved, true),
       (select count(*) from (
            select from {schema}.waiting behind where behind.room = 'behind' and behind.name = %(target)s
                limit %(bound)s) behind)::int,
       array(select behind.first_id from {schema}.waiting behind where behind.room = 'behind' and behind.name = %(target)s
             order by behind.priority desc, behind.run_at, behind.first_id limit %(shown)s)
from (select one.job_id, one.reserved from {schema}.target_holders one where one.target = %(target)s
    union all
      (select job.id, true from {schema}.job_rows job
       where job.target = %(target)s and (job.rest = 'paused' or job.rest = 'failed' and job.cleared_at is null)
         and not exists (select from {schema}.target_holders one where one.target = %(target)s)
       order by job.id limit 1)) holder
