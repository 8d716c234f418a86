-- move_on: a job has come to its next phase; only while it is leased under :token
update job_rows
set progress = max(coalesce(progress, 0), :percent), progress_note = null, spent = coalesce(:spent, spent)
where id = :id and claim_token = :token and state in ('assigned', 'running')
