-- why_target: who keeps the job's target from it: its holder, and the first five jobs that halt it
with mine as (
  select id, target from job_rows where id = :id and target is not null
),
others (id) as (
  select target_holders.job_id from mine join target_holders on target_holders.target = mine.target
  union
  select id from (
    select halting.id from mine join job_rows as halting on halting.target = mine.target
    where halting.target is not null
      and (halting.state = 'paused' or (halting.state = 'failed' and halting.cleared_at is null))
      and halting.id <> mine.id
    order by halting.id limit 5
  )
)
select
  job.id, job.state,
  case when job.state in ('paused', 'failed') then job.finished_at else job.started_at end,
  job.run_at, job.reason,
  exists (select 1 from target_holders
          where target_holders.target = mine.target and target_holders.job_id = job.id)
from mine, others
join job_rows as job on job.id = others.id
where job.id <> mine.id
order by job.id
