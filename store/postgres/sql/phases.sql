-- Phases of jobs, written under the lease of their job; and what nodes say about kinds.

-- part named_phases: the phases of jobs as they were given, in their order
named as materialized (
    select job_id, name, row_number() over (partition by job_id order by place) as place
    from unnest(%(phase_ids)s::bigint[], %(phase_names)s::text[]) with ordinality as named (job_id, name, place)
)

-- begin_phases: starts attempts, each fenced by its claim token, with the first phase that is not finished; returns their jobs,
-- each with the results of finished phases
-- Safe to send again: a phase that this attempt began is not begun twice, and a call that arrives late, after its attempt
-- has gone on, takes nothing back.
with now as materialized (select clock_timestamp() as at),
{given},
{attended},
marked as (
    update {schema}.leases lease
    set started = mine.started || added.started, workers = mine.workers || added.workers,
        started_at = mine.started_at || added.started_at
    from mine join added on added.lease_id = mine.id
    where lease.id = mine.id
),
held as materialized (
    select job.id, job.attempt + 1 as attempt
    from mine cross join lateral unnest(mine.kept) as stretch (ids)
    cross join lateral generate_series(lower(stretch.ids), upper(stretch.ids) - 1) as member (id)
    join {schema}.job_rows job on job.id = member.id
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
shown as (
    update {schema}.job_rows job
    set progress = greatest(case when job.progress_of = held.attempt then job.progress else 0 end, share.percent::float4),
        progress_note = case when job.progress_of = held.attempt then job.progress_note end, progress_of = held.attempt
    from held join share on share.job_id = held.id
    where job.id = held.id
      and share.percent > coalesce(case when job.progress_of = held.attempt then job.progress end, 0)
)
select held.id, known.name, known.result::text
from held left join known on known.job_id = held.id and known.is_finished

-- advance_phases: finishes phases, starts the next ones, each fenced by its claim token, and drafts events; returns the jobs that
-- took it
-- Safe to send again: a finished phase is not finished twice, and no second event is drafted. If a standby took over that
-- has lost the beginning of the phases, their rows are restored.
with now as materialized (select clock_timestamp() as at),
held as materialized (
    select job.id, job.attempt + 1 as attempt, job.kind, job.target, step.finished, step.result, step.next, step.spent
    from (
        select step.* from unnest(
            %(ids)s::bigint[], %(tokens)s::uuid[], %(finished)s::text[], %(results)s::text[], %(nexts)s::text[], %(spents)s::text[])
            as step (id, token, finished, result, next, spent)
        join {schema}.leases lease on lease.token = step.token and lease.jobs @> step.id
        order by lease.target, lease.token, lease.id for key share of lease) step
    join {schema}.job_rows job on job.id = step.id
    order by job.id for no key update of job
),
{named_phases},
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
           (named.name in (held.finished, held.next))::int,
               case when named.name in (held.finished, held.next) then held.attempt end,
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
    set progress = greatest(case when job.progress_of = held.attempt then job.progress else 0 end, share.percent::float4),
        progress_note = null, progress_of = held.attempt, changed_at = clock_timestamp(),
            spent = coalesce(held.spent::jsonb, job.spent)
    from held join share using (id)
    where job.id = held.id and held.id in (select job_id from finished)
),
drafted as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, details)
    select 'job.phase_completed', count(*), array_agg(held.id), array_agg(held.kind),
           case when count(held.target) > 0 then array_agg(held.target) end, array_agg(held.attempt),
           array_agg(jsonb_build_object('phase', held.finished, 'progress', 100, 'overall', floor(share.percent + 0.5)::int))
    from held join share using (id) join finished on finished.job_id = held.id
    having count(*) > 0
)
select id from held

-- settle_phases: ends the phases of attempts that the following `settle` ends, each fenced by its claim token, and drafts events
-- If the store has lost the beginning of a phase that succeeded, its row is restored, as in advance_phases. A job whose start
-- was not yet drafted gets that event first. lock_leases comes before it in the same transaction.
with now as materialized (select clock_timestamp() as at),
held as materialized (
    select job.id, job.attempt + 1 as attempt, job.kind, job.target, lease.id as lease_id, lease.node,
           ended.worker, ended.started_epoch, ended.name, ended.state, ended.result, ended.percent,
           ended.state = 'succeeded' and ended.started_epoch is not null and job.id <> all (lease.started) as is_late
    from unnest(%(ids)s::bigint[], %(every_token)s::uuid[], %(workers)s::int[], %(started_epochs)s::float8[], %(names)s::text[],
                %(states)s::text[], %(results)s::text[], %(percents)s::float4[])
         as ended (id, token, worker, started_epoch, name, state, result, percent)
    join {schema}.leases lease on lease.token = ended.token and lease.jobs @> ended.id
    join {schema}.job_rows job on job.id = ended.id
    order by job.id for no key update of job
),
{named_phases},
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
    update {schema}.leases lease
    set started = lease.started || late.ids, workers = lease.workers || late.workers, started_at = lease.started_at || late.moments
    from (select lease_id, array_agg(id) as ids, array_agg(worker) as workers,
                 array_agg(to_timestamp(started_epoch)) as moments
          from held where is_late group by lease_id) late
    where lease.id = late.lease_id
),
completed as (
    select held.id, held.kind, held.target, held.attempt, held.name,
           100.0::float8 * count(*) filter (where phase.state = 'succeeded' or named.name = held.name) / count(*) as percent
    from held join (select job_id from ended
        where state = 'succeeded' union select job_id from restored) done on done.job_id = held.id
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

-- phases: the phases of these jobs, in order; for jobs that never started, those of their kinds
select job_id, name, state, progress, result::text, attempts, started_at, finished_at
from (
    select job_id, place, name, state, progress, result, attempts, started_at, finished_at
    from {schema}.job_phases where job_id = any (%(ids)s::bigint[])
  union all
    select job.id, said.place, said.name, 'pending', null, null, 0, null, null
    from {schema}.job_rows job
    join {schema}.kind_rules rule on rule.kind = job.kind
    cross join lateral unnest(rule.phases) with ordinality as said (name, place)
    where job.id = any (%(ids)s::bigint[])
      and not exists (select from {schema}.job_phases phase where phase.job_id = job.id)
) phases
order by job_id, place

-- declare_kinds: declares phases, webhooks and priorities of kinds, for readers without a catalog; forgets kinds that have none of
-- them
with declared as (
    select rule.kind, rule.phases, rule.webhook, rule.priority
    from jsonb_to_recordset(%(rules)s::jsonb) as rule (kind text, phases text[], webhook text, priority smallint)
),
forgotten as (
    delete from {schema}.kind_rules known using declared
    where known.kind = declared.kind and declared.phases = '{}' and declared.webhook is null and declared.priority = 0
)
insert into {schema}.kind_rules as known (kind, phases, webhook, priority)
select kind, phases, webhook, priority from declared where phases <> '{}' or webhook is not null or priority <> 0
order by kind
on conflict (kind) do update set phases = excluded.phases, webhook = excluded.webhook, priority = excluded.priority
where (known.phases, known.webhook, known.priority) is distinct from (excluded.phases, excluded.webhook, excluded.priority)
