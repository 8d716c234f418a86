-- know_schedule: where a schedule stands
select name, last_slot, last_fired_at, last_job_id,
  (select state from job_rows where id = last_job_id), fired, skipped, missed, paused_at
from schedules where name = :name
