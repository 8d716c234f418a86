-- note_progress: writes progress and what was spent, each fenced by its claim token; returns the ids that took it
-- A lease is asked for as in settle.sql.
update {schema}.job_rows job
set progress = coalesce(note.percent, job.progress),
    progress_note = case when note.percent is null then job.progress_note else note.words end,
    spent = coalesce(note.spent::jsonb, job.spent)
from unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(percents)s::float4[], %(notes)s::text[], %(spents)s::text[])
     as note (id, token, percent, words, spent)
where job.id = note.id and job.claim_token = note.token and coalesce(job.lease_expires_at, '-infinity') > '-infinity'
returning job.id
