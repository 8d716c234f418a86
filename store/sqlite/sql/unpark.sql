-- unpark: gives the first :count parked jobs of one kind back to the claim
update job_rows set parked = 0
where id in (
  select id from job_rows
  where parked = 1 and kind = :kind
  order by priority desc, run_at, id
  limit :count
)
