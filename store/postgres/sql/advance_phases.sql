-- advance_phases: phases are finished and the next ones run, each fenced by its claim token, told in the log of events; returns the jobs that took it
-- Safe to be sent again: what is finished is not finished a second time, nor told. A lease is asked for as in settle.sql.
with now as materialized (select clock_timestamp() as at),
held as materialized (
    select job.id, job.attempt, job.kind, job.target, step.finished, step.result, step.next, step.spent
    from unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(finished)s::text[], %(results)s::text[], %(nexts)s::text[], %(spents)s::text[])
         as step (id, token, finished, result, next, spent)
    join {schema}.job_rows job on job.id = step.id and job.claim_token = step.token
    where coalesce(job.lease_expires_at, '-infinity') > '-infinity'
    order by job.id for no key update of job
),
ended as (
    update {schema}.job_phases phase
    set state = 'succeeded', progress = 100, result = held.result::jsonb, finished_at = now.at
    from held, now
    where phase.job_id = held.id and phase.name = held.finished and phase.state <> 'succeeded'
    returning phase.job_id
),
begun as (
    update {schema}.job_phases phase
    set state = 'running', progress = null, attempts = phase.attempts + 1, in_attempt = held.attempt,
        started_at = now.at, finished_at = null
    from held, now
    where phase.job_id = held.id and phase.name = held.next and phase.state <> 'succeeded'
      and phase.in_attempt is distinct from held.attempt
),
share as materialized (
    select held.id, 100.0::float8 * count(*) filter (where phase.state = 'succeeded' or phase.name = held.finished) / count(*)
                    as percent
    from held join {schema}.job_phases phase on phase.job_id = held.id group by held.id
),
moved as (
    update {schema}.job_rows job
    set progress = greatest(coalesce(job.progress, 0), share.percent::float4), progress_note = null,
        spent = coalesce(held.spent::jsonb, job.spent)
    from held join share using (id)
    where job.id = held.id and held.id in (select job_id from ended)
),
told as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, details)
    select 'job.phase_completed', count(*), array_agg(held.id), array_agg(held.kind),
           case when count(held.target) > 0 then array_agg(held.target) end, array_agg(held.attempt),
           array_agg(jsonb_build_object('phase', held.finished, 'progress', 100, 'overall', floor(share.percent + 0.5)::int))
    from held join share using (id) join ended on ended.job_id = held.id
    having count(*) > 0
)
select id from held
