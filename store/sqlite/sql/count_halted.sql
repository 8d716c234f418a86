-- count_halted: targets that a paused or failed job halts, up to :count; from one to the next along job_rows_halting
with recursive halted (target, number) as (
  select * from (
    select target, 1 from job_rows
    where target is not null and (state = 'paused' or (state = 'failed' and cleared_at is null))
    order by target limit 1
  )
  union all
  select (
    select job.target from job_rows job
    where job.target > halted.target
      and job.target is not null and (job.state = 'paused' or (job.state = 'failed' and job.cleared_at is null))
    order by job.target limit 1
  ), number + 1
  from halted where halted.target is not null and number < :count
)
select count(target) from halted
