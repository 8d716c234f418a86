-- why_target: who keeps the job's target from it: its holder, and the first five jobs that halt it
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
