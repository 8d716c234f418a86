-- observe: how many jobs of one priority are due, counted up to :count
select count(*) from (
  select 1 from job_rows
  where state = 'queued' and parked = 0 and behind = 0 and priority = :priority and run_at <= :now
  limit :count
)
