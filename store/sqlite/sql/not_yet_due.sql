-- not_yet_due: how many queued jobs are not yet due, counted up to :count in each priority
with recursive walk (priority) as (
  select max(priority) from job_rows where state = 'queued' and parked = 0 and behind = 0
  union all
  select (select max(job_rows.priority) from job_rows
          where state = 'queued' and parked = 0 and behind = 0 and job_rows.priority < walk.priority)
  from walk
  where walk.priority is not null
)
select coalesce(sum((
  select count(*) from (
    select 1 from job_rows
    where state = 'queued' and parked = 0 and behind = 0 and job_rows.priority = walk.priority and job_rows.run_at > :now
    limit :count
  )
)), 0)
from walk
where walk.priority is not null
