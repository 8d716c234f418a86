-- due_priorities: the priorities that have due jobs, highest first, each with its earliest due time; one probe a priority
with recursive walk (priority) as (
  select max(priority) from job_rows where state = 'queued' and parked = 0 and behind = 0
  union all
  select (select max(job_rows.priority) from job_rows
          where state = 'queued' and parked = 0 and behind = 0 and job_rows.priority < walk.priority)
  from walk
  where walk.priority is not null
),
heads (priority, run_at) as (
  select
    walk.priority,
    (select min(job_rows.run_at) from job_rows
     where state = 'queued' and parked = 0 and behind = 0 and job_rows.priority = walk.priority)
  from walk
  where walk.priority is not null
)
select priority, run_at from heads where run_at <= :now
