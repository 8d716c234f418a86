-- why_before: how many jobs stand before this one in its target, and how many of its kind are parked before it, each up to :bound
-- Two ranges of the index each: what stands after the job is not read.
with mine as materialized (
  select id, kind, target, priority, run_at from job_rows where id = :id
),
in_target as (
  select 1 from mine join job_rows as job on job.behind = 1 and job.target = mine.target
  where job.priority > mine.priority
  union all
  select 1 from mine join job_rows as job on job.behind = 1 and job.target = mine.target
  where job.priority = mine.priority and (job.run_at, job.id) < (mine.run_at, mine.id)
),
of_kind as (
  select 1 from mine join job_rows as job on job.parked = 1 and job.kind = mine.kind
  where job.priority > mine.priority
  union all
  select 1 from mine join job_rows as job on job.parked = 1 and job.kind = mine.kind
  where job.priority = mine.priority and (job.run_at, job.id) < (mine.run_at, mine.id)
)
select
  (select count(*) from (select 1 from in_target limit :bound)),
  (select count(*) from (select 1 from of_kind limit :bound))
