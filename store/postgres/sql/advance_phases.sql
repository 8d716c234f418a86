-- advance_phases: phases are finished and the next ones run, each fenced by its claim token, told in the log of events; returns the jobs that took it
-- Safe to be sent again: what is finished is not finished a second time, nor told. A lease is asked for as in settle.sql.
-- A standby that took over may have lost that they began: then they are made known again.
with now as materialized (select clock_timestamp() as at),
held as materialized (
    select job.id, job.attempt, job.kind, job.target, step.finished, step.result, step.next, step.spent
    from unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(finished)s::text[], %(results)s::text[], %(nexts)s::text[], %(spents)s::text[])
         as step (id, token, finished, result, next, spent)
    join {schema}.job_rows job on job.id = step.id and job.claim_token = step.token
    where coalesce(job.lease_expires_at, '-infinity') > '-infinity'
    order by job.id for no key update of job
),
named as materialized (
    select job_id, name, row_number() over (partition by job_id order by place) as place
    from unnest(%(phase_ids)s::bigint[], %(phase_names)s::text[]) with ordinality as named (job_id, name, place)
),
ended as (
    update {schema}.job_phases phase
    set state = 'succeeded', progress = 100, result = held.result::jsonb, finished_at = now.at
    from held, now
    where phase.job_id = held.id and phase.name = held.finished and phase.state <> 'succeeded'
    returning phase.job_id
),
restored as (
    insert into {schema}.job_phases (job_id, place, name, state, progress, result, attempts, in_attempt, started_at, finished_at)
    select held.id, named.place, named.name,
           case named.name when held.finished then 'succeeded' when held.next then 'running' else 'pending' end,
           case named.name when held.finished then 100 end, case named.name when held.finished then held.result::jsonb end,
           (named.name in (held.finished, held.next))::int, case when named.name in (held.finished, held.next) then held.attempt end,
           case when named.name in (held.finished, held.next) then now.at end, case named.name when held.finished then now.at end
    from held join named on named.job_id = held.id, now
    where not exists (select from {schema}.job_phases phase where phase.job_id = held.id and phase.name = held.finished)
    order by named.job_id, named.place
    on conflict (job_id, name) do nothing
    returning job_id
),
finished as (select job_id from ended union select job_id from restored),
begun as (
    update {schema}.job_phases phase
    set state = 'running', progress = null, attempts = phase.attempts + 1, in_attempt = held.attempt,
        started_at = now.at, finished_at = null
    from held, now
    where phase.job_id = held.id and phase.name = held.next and phase.state <> 'succeeded'
      and phase.in_attempt is distinct from held.attempt
),
share as materialized (
    select held.id, 100.0::float8 * count(*) filter (where phase.state = 'succeeded' or named.name = held.finished) / count(*)
                    as percent
    from held join named on named.job_id = held.id
    left join {schema}.job_phases phase on phase.job_id = held.id and phase.name = named.name group by held.id
),
moved as (
    update {schema}.job_rows job
    set progress = greatest(coalesce(job.progress, 0), share.percent::float4), progress_note = null,
        spent = coalesce(held.spent::jsonb, job.spent)
    from held join share using (id)
    where job.id = held.id and held.id in (select job_id from finished)
),
told as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, details)
    select 'job.phase_completed', count(*), array_agg(held.id), array_agg(held.kind),
           case when count(held.target) > 0 then array_agg(held.target) end, array_agg(held.attempt),
           array_agg(jsonb_build_object('phase', held.finished, 'progress', 100, 'overall', floor(share.percent + 0.5)::int))
    from held join share using (id) join finished on finished.job_id = held.id
    having count(*) > 0
)
select id from held
