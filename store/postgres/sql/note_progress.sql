-- note_progress: writes progress and what was spent, each fenced by its claim token; returns the ids that took it
-- A lease is asked for as in settle.sql. A note that was overtaken by the end of its phase changes nothing.
with noted as (
    update {schema}.job_rows job
    set progress = coalesce(note.percent, job.progress),
        progress_note = case when note.percent is null then job.progress_note else note.words end,
        spent = coalesce(note.spent::jsonb, job.spent)
    from unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(percents)s::float4[], %(notes)s::text[], %(spents)s::text[],
                %(phases)s::text[], %(phase_percents)s::float4[])
         as note (id, token, percent, words, spent, phase, phase_percent)
    where job.id = note.id and job.claim_token = note.token and coalesce(job.lease_expires_at, '-infinity') > '-infinity'
      and (note.phase is null or note.percent >= coalesce(job.progress, 0))
    returning job.id, job.kind, job.target, note.percent, note.words, note.phase, note.phase_percent
),
phased as (
    update {schema}.job_phases phase set progress = noted.phase_percent
    from noted where phase.job_id = noted.id and phase.name = noted.phase and phase.state = 'running'
),
told as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, details)
    select 'job.progress', count(*), array_agg(id), array_agg(kind), case when count(target) > 0 then array_agg(target) end,
           array_agg(jsonb_build_object('overall', floor(percent + 0.5)::int, 'phase', phase,
                                        'progress', coalesce(phase_percent, percent), 'note', words))
    from noted where percent is not null having count(*) > 0
)
select id from noted
