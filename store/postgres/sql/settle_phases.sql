-- settle_phases: how the phases ended in which attempts end with the statement that follows, each fenced by its claim token; told in the log of events
-- All jobs of the batch are locked here, in the order of their ids, as by settle.sql: two batches never wait for each other.
with now as materialized (select clock_timestamp() as at),
held as materialized (
    select job.id, job.attempt, job.kind, job.target, ended.name, ended.state, ended.result, ended.percent
    from unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(names)s::text[], %(states)s::text[], %(results)s::text[], %(percents)s::float4[])
         as ended (id, token, name, state, result, percent)
    join {schema}.job_rows job on job.id = ended.id and job.claim_token = ended.token
    where coalesce(job.lease_expires_at, '-infinity') > '-infinity'
    order by job.id for no key update of job
),
ended as (
    update {schema}.job_phases phase
    set state = held.state, result = held.result::jsonb,
        progress = case held.state when 'succeeded' then 100 else coalesce(held.percent, phase.progress) end,
        finished_at = case when held.state <> 'running' then now.at end
    from held, now
    where phase.job_id = held.id and phase.name = held.name and phase.state <> 'succeeded'
    returning phase.job_id, phase.state
),
completed as (
    select held.id, held.kind, held.target, held.attempt, held.name,
           100.0::float8 * count(*) filter (where phase.state = 'succeeded' or phase.name = held.name) / count(*) as percent
    from held join ended on ended.job_id = held.id and ended.state = 'succeeded'
    join {schema}.job_phases phase on phase.job_id = held.id
    group by held.id, held.kind, held.target, held.attempt, held.name
)
insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, details)
select 'job.phase_completed', count(*), array_agg(id), array_agg(kind), case when count(target) > 0 then array_agg(target) end,
       array_agg(attempt),
       array_agg(jsonb_build_object('phase', name, 'progress', 100, 'overall', floor(percent + 0.5)::int))
from completed having count(*) > 0
