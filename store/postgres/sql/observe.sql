-- observe: counts due and claimable jobs up to `bound`, how long the first of them waits, and whether any are parked
with recursive now as materialized (select clock_timestamp() as at),
levels (priority) as (
    (select queued.priority from {schema}.job_rows queued where queued.state = 'queued' and not queued.parked and not queued.behind
     order by queued.priority desc limit 1)
  union all
    select (select lower.priority from {schema}.job_rows lower
            where lower.state = 'queued' and not lower.parked and not lower.behind and lower.priority < levels.priority
            order by lower.priority desc limit 1)
    from levels where levels.priority is not null
),
due as materialized (
    select first.run_at
    from levels cross join lateral (
        select job.run_at from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority and job.run_at <= (select at from now)
        order by job.run_at, job.id limit %(bound)s) first
    limit %(bound)s
)
select (select count(*) from due)::int,
       coalesce((select extract(epoch from (select at from now) - min(run_at)) from due), 0)::float8,
       (select paused_at is not null from {schema}.queue_state),
       exists (select from {schema}.job_rows job where job.parked)
