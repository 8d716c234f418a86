-- not_yet_due: how many queued jobs are not yet due, counted up to :count
select count(*) from (
  select 1 from job_rows where state = 'queued' and run_at > :now limit :count
)
