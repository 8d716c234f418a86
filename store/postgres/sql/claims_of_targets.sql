-- Claims where jobs have targets, and passing a target on. schema/2_targets.sql says what a holder is.

-- claim_targets: as claim, where there may be jobs with a target: takes the first due jobs in claim order (priority, due time, id), at most `batch`, under one fresh token; none while the queue is paused
-- `limit 2000` bounds what the planner expects; `batch` is what is taken.
-- Of each target that it meets it takes at most one job, and puts the others behind whoever has the target, out of its
-- way. It waits for no lock but that of a claim which takes the same free target: those follow each other in order.
-- As for marks, and the plain form without them, see claim.
with recursive now as materialized (
    select clock_timestamp() as at, %(workers)s::int[] as workers, cardinality(%(workers)s::int[]) as idle,
           pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass) as walked_before
),
{levels},
bounded as (
    select due.id, due.priority, due.run_at, due.kind, due.target
    from levels cross join lateral (
        select job.id, job.priority, job.run_at, job.kind, job.target from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority and job.run_at <= (select at from now)
          /*more{*/ and (job.run_at, job.id) >= (levels.first_run_at, levels.first_id) /*}*/
        order by job.run_at, job.id limit 2000 for no key update skip locked) due
    where (select paused_at is null from {schema}.queue_state)
    limit 2000
),
room as materialized (  -- for jobs of any kind, until as many are leased as may be; without any nothing is locked and nothing moved
    select case when %(most)s::int is not null
                then greatest(0, %(most)s::int - (select count(*)::int from {schema}.job_rows job
                                                  where job.state in ('assigned', 'running'))) end as free
),
picked as materialized (select * from bounded limit case (select free from room) when 0 then 0 else %(scan)s end),
met as materialized (
    select id, priority, run_at, kind, target,
           row_number() over (partition by target order by priority desc, run_at, id) as nth
    from picked where target is not null
),
looked as materialized (  -- once for each target, by the first of its jobs
    select met.*, known.target is not null as is_known, holder.job_id as holder_id, holder.reserved,
           overtaken.id as overtaken_id, halts.id as halts_id, halting.id as halting_id, intruder.id as intruder_id, earlier.id as earlier_id
    from met
    left join lateral (
        select one.target, one.reserved from {schema}.target_holders one
        where met.nth = 1 and one.target = met.target) known on true
    left join lateral (  -- comes before this one, and was not met: another claim has it in hand
        select job.id from levels cross join lateral (
            select job.id from {schema}.job_rows job
            where job.state = 'queued' and not job.parked and not job.behind and job.target = met.target
              and job.priority = levels.priority and job.run_at <= (select at from now)
              and (levels.priority > met.priority or (job.run_at, job.id) < (met.run_at, met.id))
            order by job.run_at, job.id limit 1) job
        where met.nth = 1 and known.reserved is distinct from false and levels.priority >= met.priority limit 1) earlier on true
    left join lateral (  -- left to the one who has the earlier job
        select one.job_id, one.reserved from {schema}.target_holders one
        where met.nth = 1 and one.target = met.target and (earlier.id is null or not known.reserved)
        for update skip locked) holder on true
    left join lateral (  -- comes after this one, and has not been claimed
        select job.id from {schema}.job_rows job
        where holder.reserved and job.id = holder.job_id and job.state = 'queued'
          and (-job.priority::int, job.run_at, job.id) > (-met.priority::int, met.run_at, met.id)
        for no key update skip locked) overtaken on true
    left join lateral (
        select job.id from {schema}.job_rows job
        where met.nth = 1 and known.target is null and job.target = met.target
          and (job.state = 'paused' or job.state = 'failed' and job.cleared_at is null)
        order by job.id limit 1) halts on true
    left join lateral (  -- as it is now, and to stay so
        select job.id from {schema}.job_rows job
        where halts.id is not null and job.target = met.target
          and (job.state = 'paused' or job.state = 'failed' and job.cleared_at is null)
        order by job.id limit 1 for no key update skip locked) halting on true
    left join lateral (  -- is leased although another has the target: somebody has changed rows by hand
        select job.id from {schema}.job_rows job
        where met.nth = 1 and (known.target is null or holder.job_id is not null)
          and job.target = met.target and job.state in ('assigned', 'running') and job.id is distinct from holder.job_id
        limit 1 for no key update skip locked) intruder on true
),
gathered as (
    select id, priority, run_at, kind, target, nth,
           count(*) over its_target as number, max(id) filter (where nth = 1) over its_target as first_id,
           bool_or(is_known) over its_target as is_known, max(holder_id) over its_target as holder_id,
           bool_or(reserved) over its_target as reserved, max(overtaken_id) over its_target as overtaken_id,
           max(halts_id) over its_target as halts_id, max(halting_id) over its_target as halting_id,
           max(intruder_id) over its_target as intruder_id, max(earlier_id) over its_target as earlier_id
    from looked window its_target as (partition by target)
),
decided as materialized (  -- null = none of its jobs
    select *, case when intruder_id is not null or halts_id is not null or is_known and holder_id is null then null
                   when (holder_id is null or reserved) and earlier_id is not null then null
                   when holder_id is null or overtaken_id is not null then first_id
                   when bool_or(id = holder_id) over (partition by target) then holder_id end as chosen_id
    from gathered
),
fitting as materialized (
    select id, priority, run_at, kind, target, null::bigint as holder_id from picked where target is null
  union all
    select id, priority, run_at, kind, target, holder_id from decided where id = chosen_id
),
leased as materialized (  -- what is in hand, of kinds with a limit that are among the first
    select cap.kind, cap.most, (select count(*) from {schema}.job_rows job
                                where job.kind = cap.kind and job.state in ('assigned', 'running')) as number
    from unnest(%(cap_kinds)s::text[], %(caps)s::int[]) as cap (kind, most)
    where cap.kind in (select kind from fitting)
),
ranked as (
    select fitting.id, leased.most - leased.number as free,
           row_number() over (partition by fitting.kind order by fitting.priority desc, fitting.run_at, fitting.id) as place
    from leased join fitting on fitting.kind = leased.kind
),
excess as materialized (select id from ranked where place > free),
parked as (
    update {schema}.job_rows job set parked = true from excess where job.id = excess.id returning job.id
),
chosen as materialized (
    select * from fitting where id not in (select id from excess)
    order by priority desc, run_at, id limit least(%(batch)s, (select free from room))
),
had as materialized (  -- who has each target from now on
    select target, first_id, number, holder_id as before_id, reserved as was_reserved,
           case when intruder_id is not null or halts_id is not null then coalesce(intruder_id, halting_id)
                when chosen_id in (select id from chosen) or chosen_id in (select id from excess) then chosen_id
                else holder_id end as job_id,
           case when intruder_id is not null or chosen_id in (select id from chosen) then false
                when holder_id is null or chosen_id <> holder_id and chosen_id in (select id from excess) then true
                else reserved end as reserved
    from decided where nth = 1
),
taken as (
    insert into {schema}.target_holders (target, job_id, reserved)
    select target, job_id, reserved from had where before_id is null and job_id is not null order by target
    on conflict (target) do nothing returning target
),
moved as (  -- also where jobs are only put behind: a transaction that sees an older moment is to notice
    update {schema}.target_holders holder set job_id = had.job_id, reserved = had.reserved
    from had
    where holder.target = had.target and had.before_id is not null
      and ((had.job_id, had.reserved) <> (had.before_id, had.was_reserved)
           or had.number > 1 or had.first_id <> had.job_id)
),
stood as (
    update {schema}.job_rows job set behind = true, parked = false
    from (
        select id from decided
        where (holder_id is not null or target in (select target from taken))
          and id is distinct from chosen_id and id is distinct from holder_id
      union
        select overtaken_id from decided
        where nth = 1 and overtaken_id is not null
          and (chosen_id in (select id from chosen) or chosen_id in (select id from excess))) late
    where job.id = late.id returning job.id
),
placed as materialized (
    select id, run_at, row_number() over (order by priority desc, run_at, id) as place
    from chosen where target is null or holder_id is not null or target in (select target from taken)
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
    where job.id = placed.id
    returning placed.place, job.id, job.kind, job.payload::text as payload, job.attempt, job.max_attempts,
              job.forgiven, extract(epoch from now.at - job.run_at)::float8 as waited_seconds, job.worker,
              job.spent::text as spent, job.target
),
noted as (
    insert into {schema}.count_changes (queued) select -count(*) from claimed having count(*) > 0
),
told as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, workers, common)
    select case when ahead then 'job.assigned' else 'job.started' end, cardinality(array_agg(id)), array_agg(id), array[kind],
           case when targeted then array_agg(target) end, array_agg(attempt), array_agg(worker), %(common)s::jsonb
    from (select *, worker is null as ahead, target is not null as targeted from claimed) claimed group by ahead, targeted, kind
)
select id, kind, payload, attempt, max_attempts, forgiven, waited_seconds, worker, spent, target from (
    select * from claimed
  union all  -- how many were taken out of the way, how many are in other hands, whether no more may be leased, and what was come by
    select null, null, null, null, aside, busy, is_full, walked, null,
           (select jsonb_agg(jsonb_build_array(priority, run_at, id))::text
            from (select distinct on (priority) priority, run_at, id from picked order by priority, run_at, id) firsts
            where walked > %(walked_max)s /*more{*/ or exists (select from marks) /*}*/), null
    from (
        select ((select count(*) from parked) + (select count(*) from stood))::int as aside,
               ((select count(*) from chosen) - (select count(*) from placed)
                + (select count(*) from decided where chosen_id is null and holder_id is null
                   and target not in (select target from taken)))::int as busy,
               coalesce((select free from room) <= (select count(*) from claimed), false)::int as is_full,
               (pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass)
                - (select walked_before from now) - (select count(*) from picked))::float8 as walked) met
    where aside > 0 or busy > 0 or is_full > 0 or walked > %(walked_max)s /*more{*/ or exists (select from marks) /*}*/) found
order by place

-- lock_targets: takes the rows of those who have these targets, in order, before any of their jobs is settled
select target from {schema}.target_holders where target = any (%(targets)s::text[]) order by target for update

-- lock_targets_of: takes the rows of those who have the targets of these jobs, in order, before any of the jobs is acted on
select target from {schema}.target_holders
where target in (select job.target from {schema}.job_rows job where job.id = any (%(ids)s::bigint[]) and job.target is not null)
order by target for update

-- hand_over: passes on those of these targets whose holder has ended; a statement of its own, that sees what was committed before it
select {schema}.hand_over(%(targets)s::text[], %(ring)s)

-- turns_of: the place of the job of each of these targets whose turn it is
select job.priority, job.run_at, job.id from unnest(%(targets)s::text[]) as wanted (target) cross join lateral (
    select job.priority, job.run_at, job.id from {schema}.job_rows job
    where job.target = wanted.target and job.state = 'queued' and not job.parked and not job.behind
    order by job.priority desc, job.run_at, job.id limit 1) job

-- halted_targets: how many targets a paused or failed job halts, looking at `bound` such jobs, and the first of them
with halted as materialized (
    select distinct target from (
        select target from {schema}.job_rows
        where target is not null and (state = 'paused' or state = 'failed' and cleared_at is null)
        order by target, id limit %(bound)s) one
)
select count(*), coalesce((array_agg(target order by target))[:%(named)s], '{}'::text[]) from halted

-- target: who has a target, or halts it while nobody has it, and who waits: how many, up to `bound`, and the first of them
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
