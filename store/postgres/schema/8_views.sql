-- Views for people and other programs; and nobody may call a function unless a role is granted it.

-- The phases of jobs as people see them. How one is shown follows from what is stored of it and the state of its job, as in
-- store/phases.py. A job that never started has the phases that the nodes say its kind has.
create view {schema}.shown_phases as
select job.id as job_id, phase.place, phase.name, phase.was_begun, shown.state,
       case shown.state when 'succeeded' then 100 when 'pending' then 0
            else floor(coalesce(phase.progress, 0) + 0.5)::int end as progress,
       case phase.stored when 'succeeded' then phase.result end as result
from {schema}.job_rows job
cross join lateral (
    select begun.place, begun.name, begun.state as stored, begun.progress, begun.result, true as was_begun
    from {schema}.job_phases begun where begun.job_id = job.id
    union all
    select said.place, said.name, 'pending', null, null, false
    from {schema}.kind_rules rule cross join lateral unnest(rule.phases) with ordinality as said (name, place)
    where rule.kind = job.kind and not exists (select from {schema}.job_phases begun where begun.job_id = job.id)) phase
cross join lateral (
    select case when phase.stored = 'succeeded' or job.state = 'succeeded' then 'succeeded'
                when job.state = 'canceled' then 'canceled'
                when job.state = 'failed' then case phase.stored when 'pending' then 'pending' else 'failed' end
                when job.state in ('assigned', 'running') and phase.stored = 'running' then 'running'
                else 'pending' end as state) shown;

create view {schema}.jobs as
select id, kind, state, payload, result, error, reason, priority, attempt, max_attempts,
       created_at, run_at, started_at, finished_at,
       case when state in ('assigned', 'running') then node || coalesce('/' || worker, '') end as lease_owner,
       lease_expires_at, heartbeat_at,
       dedup_key,
       request is not distinct from 'cancel' as cancel_requested,
       (select jsonb_build_object(
                   'overall', case when job.state = 'succeeded' then 100 else floor(0.5 + greatest(coalesce(job.progress, 0),
                       coalesce(100.0 * count(*) filter (where phase.state = 'succeeded') / nullif(count(*), 0), 0)))::int end,
                   'phase', (array_agg(phase.name order by phase.place) filter (where phase.was_begun and phase.state <> 'succeeded'))[1],
                   'phases', coalesce(jsonb_agg(jsonb_build_object(
                       'name', phase.name, 'state', phase.state, 'progress', phase.progress, 'result', phase.result)
                       order by phase.place), '[]'),
                   'note', job.progress_note)
        from {schema}.shown_phases phase where phase.job_id = job.id) as progress,
       cleared_at, target,
       (select jsonb_build_object(
                   'url', coalesce(sent.url, wanted.url),
                   'sent_at', case sent.state when 'delivered' then sent.ended_at end, 'attempts', coalesce(sent.tries, 0))
        from (select coalesce(job.webhook, (select rule.webhook from {schema}.kind_rules rule where rule.kind = job.kind),
                              (select rule.webhook from {schema}.kind_rules rule where rule.kind = '')) as url) wanted
        left join lateral (select hook.url, hook.state, hook.ended_at, hook.tries from {schema}.webhooks hook
                           where hook.job_id = job.id and hook.type in ('job.succeeded', 'job.failed', 'job.canceled')
                           order by hook.id desc limit 1) sent on true
        where coalesce(sent.url, wanted.url) is not null) as webhook,
       stale_at
from {schema}.job_rows job;

-- The same without what jobs were given and what came of it: no results of phases, and no URL, which may be a secret.
create view {schema}.jobs_without_payload as
select id, kind, state, error ->> 'type' as error_type, reason, priority, attempt, max_attempts,
       created_at, run_at, started_at, finished_at,
       case when state in ('assigned', 'running') then node || coalesce('/' || worker, '') end as lease_owner,
       lease_expires_at, heartbeat_at, request is not distinct from 'cancel' as cancel_requested,
       case when job.state = 'succeeded' then 100 else floor(0.5 + greatest(coalesce(job.progress, 0), coalesce(
           (select 100.0 * count(*) filter (where phase.state = 'succeeded') / nullif(count(*), 0)
            from {schema}.job_phases phase where phase.job_id = job.id), 0)))::int end as progress,
       cleared_at, target,
       (select phase.name from {schema}.job_phases phase
        where phase.job_id = job.id and phase.state <> 'succeeded' and job.state <> 'succeeded'
        order by phase.place limit 1) as phase,
       (select coalesce(jsonb_agg(jsonb_build_object(
                   'name', phase.name, 'state', phase.state, 'progress', phase.progress) order by phase.place), '[]')
        from {schema}.shown_phases phase where phase.job_id = job.id) as phases,
       (select jsonb_build_object('sent_at', case hook.state when 'delivered' then hook.ended_at end, 'attempts', hook.tries)
        from {schema}.webhooks hook
        where hook.job_id = job.id and hook.type in ('job.succeeded', 'job.failed', 'job.canceled')
        order by hook.id desc limit 1) as webhook,
       stale_at
from {schema}.job_rows job;

create view {schema}.queue_depth as
select count(*) as queued,
       count(*) filter (where claimable and run_at <= clock_timestamp()) as due,
       coalesce(extract(epoch from clock_timestamp()
           - min(run_at) filter (where claimable and run_at <= clock_timestamp())), 0) as oldest_due_seconds
from (select run_at, true as claimable from {schema}.job_rows where state = 'queued' and not parked and not behind
      union all select run_at, true from {schema}.job_rows where parked
      union all select run_at, false from {schema}.job_rows where behind) waiting;

-- One row an event. Newly committed events appear once a node, or any caller of order_events, has put them in order.
create view {schema}.events as
select log.last - log.size + nth as id, log.at, log.type,
       log.job_ids[case cardinality(log.job_ids) when 1 then 1 else nth end] as job_id,
       log.kinds[case cardinality(log.kinds) when 1 then 1 else nth end] as kind,
       log.targets[case cardinality(log.targets) when 1 then 1 else nth end] as target,
       coalesce(log.common, '{}')
       || case when log.attempts is null then '{}'
               else jsonb_build_object('attempt', log.attempts[case cardinality(log.attempts) when 1 then 1 else nth end]) end
       || case when log.workers is null then '{}'
               else jsonb_build_object('worker', log.workers[case cardinality(log.workers) when 1 then 1 else nth end]) end
       || coalesce(log.details[case cardinality(log.details) when 1 then 1 else nth end], '{}') as data
from {schema}.event_log log cross join lateral generate_series(1, log.size) nth;

create view {schema}.duty_leaders as
select duty, tenant, node, acquired_at, heartbeat_at, clock_timestamp() - acquired_at as held_for,
       last_run_at, items, errors, last_error, hand_overs,
       term is not null and expires_at > clock_timestamp() as is_held
from {schema}.duties;

revoke execute on all functions in schema {schema} from public;
