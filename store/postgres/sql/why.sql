-- The facts behind `musterd why`, read in one transaction. Nothing here grows with the queue.

-- why_job: what the job's own row says, the outcome of its last ended attempt, whether the queue is paused, and the time
select job.id, job.kind, job.state, job.priority, job.run_at, job.started_at, job.finished_at, job.attempt,
       job.node, job.worker, job.lease_expires_at, job.request, job.requested_at, job.reason, job.error::text,
       job.target, job.parked, job.cleared_at, past.outcome, clock_timestamp(), queue.paused_at, queue.paused_by
from {schema}.queue_state queue, {schema}.live_jobs job
left join lateral (
    select ended.outcome from {schema}.attempts ended where ended.job_id = job.id
    order by ended.attempt desc limit 1) past on true
where job.id = %(id)s

-- why_before: how many jobs of its target wait before this one, and how many of its kind are parked before it, each up to `bound`
-- Two ranges of the index each, so jobs after this one are not read. Lateral, so that the index is always searched.
with mine as materialized (
    select job.id, job.kind, job.target, job.priority, job.run_at from {schema}.job_rows job where job.id = %(id)s
),
in_target as (
    select from mine cross join lateral (
        select from {schema}.waiting behind
        where behind.room = 'behind' and behind.name = mine.target and behind.priority > mine.priority
        order by behind.priority desc limit %(bound)s) higher
  union all
    select from mine cross join lateral (
        select from {schema}.waiting behind
        where behind.room = 'behind' and behind.name = mine.target and behind.priority = mine.priority
          and (behind.run_at, behind.first_id) < (mine.run_at, mine.id)
        order by behind.run_at, behind.first_id limit %(bound)s) earlier
),
of_kind as (
    select higher.size from mine cross join lateral (
        select parked.last_id - parked.first_id + 1 as size from {schema}.waiting parked
        where parked.room = 'parked' and parked.name = mine.kind and parked.priority > mine.priority
        order by parked.priority desc limit %(bound)s) higher
  union all
    select earlier.size from mine cross join lateral (
        select least(parked.last_id, mine.id - 1) - parked.first_id + 1 as size from {schema}.waiting parked
        where parked.room = 'parked' and parked.name = mine.kind and parked.priority = mine.priority
          and (parked.run_at, parked.first_id) < (mine.run_at, mine.id)
        order by parked.run_at, parked.first_id limit %(bound)s) earlier
)
select (select count(*) from (select from in_target limit %(bound)s) counted)::int,
       least(%(bound)s::bigint, (select coalesce(sum(size), 0) from of_kind))::int

-- why_line: of the first `bound` jobs in claim order, by kind: how many will be claimed before this one, how many in all, how many
-- of its target go first, how many were read, and whether it is among them
-- Of the jobs of a target only the one whose turn it is counts: the others will wait behind it.
with now as materialized (select clock_timestamp() as at),
mine as materialized (
    select job.id, job.priority, job.run_at, job.target from {schema}.job_rows job where job.id = %(id)s
),
line as materialized (
    select job.id, first.priority, first.run_at, first.kind, first.target
    from {schema}.claimable_priorities levels cross join lateral (
        select stretch.* from {schema}.ready stretch
        where stretch.priority = levels.priority and stretch.run_at <= (select at from now)
        order by stretch.run_at, stretch.first_id limit %(bound)s) first
    cross join lateral generate_series(first.first_id, first.last_id) as job (id)
    limit %(bound)s
),
placed as materialized (
    select line.id, line.kind, line.target, line.priority, line.run_at, line.id = mine.id as is_mine,
           line.priority > mine.priority
             or line.priority = mine.priority and (line.run_at, line.id) < (mine.run_at, mine.id) as is_before,
           line.target = mine.target as is_of_target
    from line cross join mine
),
turns as (
    select placed.*, holder.job_id as holder,
           row_number() over (partition by placed.target order by placed.priority desc, placed.run_at, placed.id) as turn
    from placed left join {schema}.target_holders holder on holder.target = placed.target
    where placed.target is not null
),
judged as (
    select kind, is_before, is_mine, true as has_turn, false as goes_first from placed where target is null
  union all
    select kind, is_before, is_mine, id = holder or holder is null and turn = 1,
           is_of_target and is_before and id is distinct from holder
    from turns
)
select kind, count(*) filter (where is_before and has_turn)::int, count(*) filter (where has_turn)::int,
       count(*) filter (where goes_first)::int, count(*)::int, bool_or(is_mine)
from judged group by kind

-- why_target: the jobs that keep this one from its target: the holder, and the first five that halt it
with mine as materialized (
    select job.id, job.target from {schema}.job_rows job where job.id = %(id)s and job.target is not null
),
others as materialized (
    select holder.job_id as id from mine join {schema}.target_holders holder on holder.target = mine.target
  union
    select halting.id from mine cross join lateral (
        select job.id from {schema}.job_rows job
        where job.target = mine.target and (job.rest = 'paused' or job.rest = 'failed' and job.cleared_at is null)
          and job.id <> mine.id
        order by job.id limit 5) halting
)
select job.id, job.state, case when job.state in ('paused', 'failed') then job.finished_at else job.started_at end,
       job.run_at, job.reason, holder.job_id is not null
from mine cross join others
cross join lateral (select * from {schema}.live_jobs where id = others.id limit 1) job
left join {schema}.target_holders holder on holder.target = mine.target and holder.job_id = job.id
where job.id <> mine.id
order by job.id

-- why_leased: the leased jobs, at most `bound`, each with how long it has been running, and how many there are
select id, kind, node, worker, extract(epoch from clock_timestamp() - started_at)::float8, {leased_of_all}
from {schema}.first_in_hand(0, %(bound)s) order by id
