-- next_due: when the next queued job that is not yet due becomes due; one probe a priority
with recursive walk (priority) as (
  select max(priority) from job_rows where state = 'queued' and parked = 0 and behind = 0
  union all
  select (select max(job_rows.priority) from job_rows
          where state = 'queued' and parked = 0 and behind = 0 and job_rows.priority < walk.priority)
  from walk
  where walk.priority is not null
)
select min((
  select min(job_rows.run_at) from job_rows
  where state = 'queued' and parked = 0 and behind = 0 and job_rows.priority = walk.priority and job_rows.run_at > :now
))
from walk
where walk.priority is not null
