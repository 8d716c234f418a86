-- halted_targets: the targets that a paused or failed job halts, looking at :bound such jobs
select distinct target from (
  select target from job_rows
  where target is not null and (state = 'paused' or (state = 'failed' and cleared_at is null))
  order by target, id
  limit :bound
) order by target
