-- begin_phases: attempts begin, each fenced by its claim token: they run, and of each the first phase that is not finished; returns their jobs, each with what is finished
-- Safe to be sent again: what was begun in this attempt is not begun a second time, and a call that comes late, after its
-- attempt has gone on, takes nothing back. A lease is asked for as in settle.sql.
with now as materialized (select clock_timestamp() as at),
held as materialized (
    select job.id, job.attempt, job.state, job.kind, job.target, job.node, coalesce(start.worker, job.worker) as worker,
           start.started_age
    from unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(workers)s::int[], %(started_ages)s::float8[])
         as start (id, token, worker, started_age)
    join {schema}.job_rows job on job.id = start.id and job.claim_token = start.token
    where coalesce(job.lease_expires_at, '-infinity') > '-infinity'
    order by job.id for no key update of job
),
known as materialized (
    select named.job_id, named.name, named.place, phase.state is not distinct from 'succeeded' as is_finished, phase.result,
           phase.state is distinct from 'succeeded'
           and row_number() over (partition by named.job_id, phase.state is not distinct from 'succeeded' order by named.place) = 1
               as is_next
    from unnest(%(phase_ids)s::bigint[], %(phase_names)s::text[]) with ordinality as named (job_id, name, place)
    join held on held.id = named.job_id
    left join {schema}.job_phases phase on phase.job_id = named.job_id and phase.name = named.name
),
forgotten as (
    delete from {schema}.job_phases phase using held
    where phase.job_id = held.id
      and not exists (select from known where known.job_id = phase.job_id and known.name = phase.name)
),
begun as (
    insert into {schema}.job_phases as phase (job_id, place, name, state, attempts, in_attempt, started_at)
    select known.job_id, row_number() over (partition by known.job_id order by known.place), known.name,
           case when known.is_next then 'running' when known.is_finished then 'succeeded' else 'pending' end,
           known.is_next::int, case when known.is_next then held.attempt end, case when known.is_next then now.at end
    from known join held on held.id = known.job_id, now
    order by known.job_id, known.place
    on conflict (job_id, name) do update
    set place = excluded.place,
        state = case when phase.state = 'succeeded' then phase.state
                     when phase.state = 'running' and excluded.state = 'pending'
                          and phase.in_attempt = (select held.attempt from held where held.id = phase.job_id) then phase.state
                     else excluded.state end,
        attempts = phase.attempts
                   + (excluded.in_attempt is not null and phase.in_attempt is distinct from excluded.in_attempt)::int,
        started_at = case when excluded.in_attempt is null or phase.in_attempt is not distinct from excluded.in_attempt
                          then phase.started_at else excluded.started_at end,
        finished_at = case when phase.state = 'succeeded' then phase.finished_at end,
        progress = case when phase.state = 'succeeded'
                          or phase.in_attempt is not distinct from excluded.in_attempt then phase.progress end,
        in_attempt = coalesce(excluded.in_attempt, phase.in_attempt)
    where (phase.place, phase.state) is distinct from (excluded.place, excluded.state)
       or phase.in_attempt is distinct from coalesce(excluded.in_attempt, phase.in_attempt)
),
share as (
    select job_id, 100.0::float8 * count(*) filter (where is_finished) / count(*) as percent from known group by job_id
),
started as (
    update {schema}.job_rows job
    set state = 'running', worker = held.worker,
        started_at = coalesce(job.started_at, now.at - make_interval(secs => held.started_age)),
        progress = greatest(coalesce(job.progress, 0), share.percent::float4)
    from held join share on share.job_id = held.id, now
    where job.id = held.id and (held.state <> 'running' or job.started_at is null or share.percent > coalesce(job.progress, 0))
),
told as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, workers, common)
    select 'job.started', count(*), array_agg(id), array_agg(kind), case when count(target) > 0 then array_agg(target) end,
           array_agg(attempt), array_agg(worker), jsonb_build_object('node', node)
    from held where state = 'assigned' group by node
)
select held.id, known.name, known.result::text
from held left join known on known.job_id = held.id and known.is_finished
