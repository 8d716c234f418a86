-- The facts behind `musterd why`, read in one transaction. Nothing here grows with the queue.

-- why_job: what the job's own row says, the outcome of its last ended attempt, whether the queue is paused, and the time
select job.id, job.kind, job.state, job.priority, job.run_at, job.started_at, job.finished_at, job.attempt,
       job.node, job.worker, job.lease_expires_at, job.request, job.requested_at, job.reason, job.error::text,
       job.target, job.parked, job.cleared_at, past.outcome, clock_timestamp(), queue.paused_at, queue.paused_by
from {schema}.queue_state queue, {schema}.job_rows job
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
        select from {schema}.job_rows job
        where job.behind and job.target = mine.target and job.priority > mine.priority
        order by job.priority desc limit %(bound)s) higher
  union all
    select from mine cross join lateral (
        select from {schema}.job_rows job
        where job.behind and job.target = mine.target and job.priority = mine.priority
          and (job.run_at, job.id) < (mine.run_at, mine.id)
        order by job.run_at, job.id limit %(bound)s) earlier
),
of_kind as (
    select from mine cross join lateral (
        select from {schema}.job_rows job
        where job.parked and job.kind = mine.kind and job.priority > mine.priority
        order by job.priority desc limit %(bound)s) higher
  union all
    select from mine cross join lateral (
        select from {schema}.job_rows job
        where job.parked and job.kind = mine.kind and job.priority = mine.priority
          and (job.run_at, job.id) < (mine.run_at, mine.id)
        order by job.run_at, job.id limit %(bound)s) earlier
)
select (select count(*) from (select from in_target limit %(bound)s) counted)::int,
       (select count(*) from (select from of_kind limit %(bound)s) counted)::int

-- why_line: of the first `bound` jobs in claim order, by kind: how many will be claimed before this one, how many in all, how many of its target go first, how many were read, and whether it is among them
-- Of the jobs of a target only the one whose turn it is counts: the others will wait behind it.
with recursive now as materialized (select clock_timestamp() as at),
mine as materialized (
    select job.id, job.priority, job.run_at, job.target from {schema}.job_rows job where job.id = %(id)s
),
levels (priority) as (
    (select queued.priority from {schema}.job_rows queued
     where queued.state = 'queued' and not queued.parked and not queued.behind
     order by queued.priority desc limit 1)
  union all
    select (select lower.priority from {schema}.job_rows lower
            where lower.state = 'queued' and not lower.parked and not lower.behind and lower.priority < levels.priority
            order by lower.priority desc limit 1)
    from levels where levels.priority is not null
),
line as materialized (
    select first.id, first.priority, first.run_at, first.kind, first.target
    from levels cross join lateral (
        select job.id, job.priority, job.run_at, job.kind, job.target from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind
          and job.priority = levels.priority and job.run_at <= (select at from now)
        order by job.run_at, job.id limit %(bound)s) first
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
        where job.target = mine.target and (job.state = 'paused' or job.state = 'failed' and job.cleared_at is null)
          and job.id <> mine.id
        order by job.id limit 5) halting
)
select job.id, job.state, case when job.state in ('paused', 'failed') then job.finished_at else job.started_at end,
       job.run_at, job.reason, holder.job_id is not null
from mine cross join others
join {schema}.job_rows job on job.id = others.id
left join {schema}.target_holders holder on holder.target = mine.target and holder.job_id = job.id
where job.id <> mine.id
order by job.id

-- why_leased: the leased jobs, at most `bound`, each with how long it has been running, and how many there are
select id, kind, node, worker, extract(epoch from clock_timestamp() - started_at)::float8, count(*) over ()
from {schema}.job_rows where state in ('assigned', 'running') order by id limit %(bound)s
