-- settle_phases: how the phases ended in which attempts end with the statement that follows, each fenced by its claim token; told in the log of events
-- Of those that succeeded, what the store has lost of their beginning is made known again, as by advance_phases.sql.
-- So is a job that was never told to have started: that comes first.
-- All jobs of the batch are locked here, in the order of their ids, as by settle.sql: two batches never wait for each other.
with now as materialized (select clock_timestamp() as at),
held as materialized (
    select job.id, job.attempt, job.kind, job.target, job.node, coalesce(ended.worker, job.worker) as worker,
           job.state = 'assigned' and ended.state = 'succeeded' as is_late, ended.name, ended.state, ended.result, ended.percent
    from unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(workers)s::int[], %(names)s::text[], %(states)s::text[], %(results)s::text[],
                %(percents)s::float4[]) as ended (id, token, worker, name, state, result, percent)
    join {schema}.job_rows job on job.id = ended.id and job.claim_token = ended.token
    where coalesce(job.lease_expires_at, '-infinity') > '-infinity'
    order by job.id for no key update of job
),
named as materialized (
    select job_id, name, row_number() over (partition by job_id order by place) as place
    from unnest(%(phase_ids)s::bigint[], %(phase_names)s::text[]) with ordinality as named (job_id, name, place)
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
restored as (
    insert into {schema}.job_phases (job_id, place, name, state, progress, result, attempts, in_attempt, started_at, finished_at)
    select held.id, named.place, named.name, case when named.name = held.name then held.state else 'pending' end,
           case when named.name = held.name then 100 end, case when named.name = held.name then held.result::jsonb end,
           (named.name = held.name)::int, case when named.name = held.name then held.attempt end,
           case when named.name = held.name then now.at end, case when named.name = held.name then now.at end
    from held join named on named.job_id = held.id, now
    where held.state = 'succeeded'
      and not exists (select from {schema}.job_phases phase where phase.job_id = held.id and phase.name = held.name)
    order by named.job_id, named.place
    on conflict (job_id, name) do nothing
    returning job_id
),
begun as (
    update {schema}.job_rows job set state = 'running', worker = held.worker  -- since when, settle.sql says
    from held where job.id = held.id and held.is_late
),
completed as (
    select held.id, held.kind, held.target, held.attempt, held.name,
           100.0::float8 * count(*) filter (where phase.state = 'succeeded' or named.name = held.name) / count(*) as percent
    from held join (select job_id from ended where state = 'succeeded' union select job_id from restored) done on done.job_id = held.id
    join named on named.job_id = held.id
    left join {schema}.job_phases phase on phase.job_id = held.id and phase.name = named.name
    group by held.id, held.kind, held.target, held.attempt, held.name
)
insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, workers, common, details)
select 'job.started', count(*), array_agg(id), array_agg(kind), case when count(target) > 0 then array_agg(target) end,
       array_agg(attempt), array_agg(worker), jsonb_build_object('node', node), null
from held where is_late group by node
union all
select 'job.phase_completed', count(*), array_agg(id), array_agg(kind), case when count(target) > 0 then array_agg(target) end,
       array_agg(attempt), null, null,
       array_agg(jsonb_build_object('phase', name, 'progress', 100, 'overall', floor(percent + 0.5)::int))
from completed having count(*) > 0
