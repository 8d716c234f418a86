-- why_before: how many jobs stand behind before this one in its target, and how many of its kind are parked before it, each up to `bound`
-- Two ranges of the index each: what stands after the job is not read. Lateral, so that the index is always searched.
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
