-- busy_schedule: whether the job of its last slot, or the one made last by hand, has not ended
select exists (
  select 1 from schedules join job_rows on job_rows.id in (last_job_id, slot_job_id)
  where name = :name and state not in ('succeeded', 'failed', 'canceled')
)
