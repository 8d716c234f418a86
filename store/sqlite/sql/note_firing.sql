-- note_firing: a slot made this job, or none, since an earlier one was busy; or somebody made it by hand
update schedules
set last_job_id = coalesce(:job_id, last_job_id), last_fired_at = case when :job_id is null then last_fired_at else :now end,
  slot_job_id = case when :slot is null then slot_job_id else coalesce(:job_id, slot_job_id) end,
  fired = fired + (:job_id is not null), skipped = skipped + (:job_id is null)
where name = :name
