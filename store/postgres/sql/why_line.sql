-- why_line: of the first `bound` jobs in claim order, by kind: how many will be claimed before this one, how many in all, how many of its target go first, how many were looked at, and whether it is among them
-- Of jobs with a target only that one counts whose turn it is: the others will stand behind it.
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
told as (
    select kind, is_before, is_mine, true as has_turn, false as goes_first from placed where target is null
  union all
    select kind, is_before, is_mine, id = holder or holder is null and turn = 1,
           is_of_target and is_before and id is distinct from holder
    from turns
)
select kind, count(*) filter (where is_before and has_turn)::int, count(*) filter (where has_turn)::int,
       count(*) filter (where goes_first)::int, count(*)::int, bool_or(is_mine)
from told group by kind
