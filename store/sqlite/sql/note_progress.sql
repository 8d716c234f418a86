-- note_progress: writes one job's progress and what it has spent; only while it is leased under :token
-- A note that was overtaken by the end of its phase changes nothing.
update job_rows
set progress = coalesce(:percent, progress),
  progress_note = case when :percent is null then progress_note else :note end,
  spent = coalesce(:spent, spent)
where id = :id and claim_token = :token and state in ('assigned', 'running')
  and (:phase is null or :percent >= coalesce(progress, 0))
