-- Views for people and other programs; and nobody may call a function unless a role is granted it.

-- The jobs with what is known of those in hand: for readers that want single ones or a page. Of a job in hand it shows the
-- attempt that runs, with nothing of what an earlier one left but its error, its reason and what was spent.
create view {schema}.live_jobs as
select job.id, job.kind, job.target,
       case when held.id is null then job.state when held.started_at is null then 'assigned' else 'running' end as state,
       job.priority, job.run_at, job.created_at,
       case when held.id is null then job.started_at else held.started_at end as started_at,
       case when held.id is null then job.finished_at end as finished_at,
       held.expires_at as lease_expires_at, held.heartbeat_at,
       coalesce(held.token, job.claim_token) as claim_token,
       coalesce(held.node, job.node) as node,
       case when held.id is null then job.worker else held.worker end as worker,
       job.attempt + (held.id is not null)::integer as attempt,
       job.max_attempts, job.forgiven, job.payload,
       case when held.id is null then job.result end as result,
       job.error, job.reason,
       case when held.id is null then job.log
            else (select string_agg(said.words, '' order by said.first) from {schema}.live_logs said
                  where said.job_id = job.id and said.token = held.token) end as log,
       case when held.id is null then job.last_outcome end as last_outcome,
       job.spent, job.request, job.requested_at,
       case when held.id is null or job.progress_of = job.attempt + 1 then job.progress end as progress,
       case when held.id is null or job.progress_of = job.attempt + 1 then job.progress_note end as progress_note,
       job.cleared_at, job.stale_at, job.dedup_key, job.traceparent, job.webhook, job.rest, job.schedule, job.scheduled_for,
       greatest(job.created_at, job.changed_at, job.started_at, job.finished_at, job.requested_at, job.cleared_at, job.stale_at,
                held.heartbeat_at) as updated_at,
       job.state = 'queued' and coalesce((
           select parked.last_id >= job.id from {schema}.waiting parked
           where parked.room = 'parked' and parked.name = job.kind and parked.priority = job.priority
             and parked.run_at = job.run_at and parked.first_id <= job.id
           order by parked.first_id desc limit 1), false) as parked,
       job.state = 'queued' and exists (
           select from {schema}.waiting behind
           where behind.room = 'behind' and behind.name = job.target and behind.priority = job.priority
             and behind.run_at = job.run_at and behind.first_id = job.id) as behind
from {schema}.job_rows job left join lateral (  -- looked up for each: few jobs are asked for, and leases are few
    select l.id, l.token, l.node, l.expires_at, l.heartbeat_at, l.workers[begun.place] as worker,
        l.started_at[begun.place] as started_at
    from {schema}.leases l cross join lateral (select array_position(l.started, job.id) as place) begun
    where job.state = 'queued' and l.span @> job.id and l.jobs @> job.id limit 1) held on true;

-- The phases of jobs as people see them. How one is shown follows from what is stored of it and the state of its job, as in
-- store/phases.py. A job that never started has the phases that the nodes say its kind has.
create view {schema}.shown_phases as
select job.id as job_id, phase.place, phase.name, phase.was_begun, shown.state,
       case shown.state when 'succeeded' then 100 when 'pending' then 0
            else floor(coalesce(phase.progress, 0) + 0.5)::int end as progress,
       case phase.stored when 'succeeded' then phase.result end as result
from {schema}.live_jobs job
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

-- One table alone is read in its outermost part, so that inserts go through it.
create view {schema}.jobs as
select id, kind,
       case when state <> 'queued' then state
            else coalesce((select case when job.id = any (l.started) then 'running' else 'assigned' end
                           from {schema}.leases l where l.span @> job.id and l.jobs @> job.id limit 1), state) end as state,
       payload,
       case when state = 'succeeded' then result end as result,
       error, reason, priority,
       attempt + case when state = 'queued' then (select count(*)::integer from {schema}.leases l
           where l.span @> job.id and l.jobs @> job.id) else 0 end
           as attempt,
       max_attempts, created_at, run_at,
       case when state = 'queued' and exists (select from {schema}.leases l where l.span @> job.id and l.jobs @> job.id)
            then (select l.started_at[array_position(l.started, job.id)] from {schema}.leases l
                where l.span @> job.id and l.jobs @> job.id limit 1)
            else started_at end as started_at,
       case when state <> 'queued' or not exists (select from {schema}.leases l
           where l.span @> job.id and l.jobs @> job.id) then finished_at end
           as finished_at,
       case when state = 'queued' then (
           select l.node || coalesce('/' || l.workers[array_position(l.started, job.id)], '')
           from {schema}.leases l where l.span @> job.id and l.jobs @> job.id limit 1) end as lease_owner,
       case when state = 'queued' then (
           select l.expires_at from {schema}.leases l where l.span @> job.id and l.jobs @> job.id limit 1) end as lease_expires_at,
       case when state = 'queued' then (
           select l.heartbeat_at from {schema}.leases l where l.span @> job.id and l.jobs @> job.id limit 1) end as heartbeat_at,
       dedup_key,
       request is not distinct from 'cancel' as cancel_requested, request is not distinct from 'pause' as pause_requested,
       (select jsonb_build_object(
                   'overall', case when live.state = 'succeeded' then 100
                                   else floor(0.5 + greatest(coalesce(live.progress, 0), coalesce(shown.share, 0)))::int end,
                   'phase', shown.phase, 'phases', shown.phases, 'note', live.progress_note)
        from {schema}.live_jobs live cross join lateral (
            select 100.0 * count(*) filter (where phase.state = 'succeeded') / nullif(count(*), 0) as share,
                   (array_agg(phase.name order by phase.place) filter (where phase.was_begun
                       and phase.state <> 'succeeded'))[1] as phase,
                   coalesce(jsonb_agg(jsonb_build_object(
                       'name', phase.name, 'state', phase.state, 'progress', phase.progress, 'result', phase.result)
                       order by phase.place), '[]') as phases
            from {schema}.shown_phases phase where phase.job_id = live.id) shown
        where live.id = job.id) as progress,
       cleared_at, target, traceparent,
       (select jsonb_build_object(
                   'url', coalesce(sent.url, wanted.url),
                   'sent_at', case sent.state when 'delivered' then sent.ended_at end, 'attempts', coalesce(sent.tries, 0))
        from (select coalesce(job.webhook, (select rule.webhook from {schema}.kind_rules rule where rule.kind = job.kind),
                              (select rule.webhook from {schema}.kind_rules rule where rule.kind = '')) as url) wanted
        left join lateral (select hook.url, hook.state, hook.ended_at, hook.tries from {schema}.webhooks hook
                           where hook.job_id = job.id and hook.type in ('job.succeeded', 'job.failed', 'job.canceled')
                           order by hook.id desc limit 1) sent on true
        where coalesce(sent.url, wanted.url) is not null) as webhook,
       stale_at, schedule, scheduled_for, spent,
       (select queue.tenant from {schema}.queue_state queue) as tenant,
       (select coalesce(jsonb_agg(to_jsonb(one) order by one.attempt), '[]') from (
            select past.attempt, past.worker, past.node, past.started_at, past.finished_at, past.outcome, past.error, past.log
            from {schema}.attempts past where past.job_id = job.id
            union all
            select live.attempt, live.worker, live.node, live.started_at, live.finished_at, live.last_outcome,
                   case when live.last_outcome is not null then live.error end, live.log
            from {schema}.live_jobs live
            where live.id = job.id and (live.lease_expires_at is not null or live.last_outcome is not null)) one) as attempts,
       greatest(created_at, changed_at, started_at, finished_at, requested_at, cleared_at, stale_at,
                (select max(l.heartbeat_at) from {schema}.leases l
                    where job.state = 'queued' and l.span @> job.id and l.jobs @> job.id)) as updated_at
from {schema}.job_rows job;
-- No constant, which would be dropped: what leaves it out has the priority of its kind.
alter view {schema}.jobs alter column priority set default nullif(0, 0)::smallint;

-- The same without what jobs were given and what came of it: no results of phases, and no URL, which may be a secret.
create view {schema}.jobs_without_payload as
select id, kind, state, error ->> 'type' as error_type, reason, priority, attempt, max_attempts,
       created_at, run_at, started_at, finished_at,
       case when state in ('assigned', 'running') then node || coalesce('/' || worker, '') end as lease_owner,
       lease_expires_at, heartbeat_at,
       request is not distinct from 'cancel' as cancel_requested, request is not distinct from 'pause' as pause_requested,
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
       stale_at, schedule, scheduled_for, updated_at
from {schema}.live_jobs job;

create view {schema}.queue_depth as
select coalesce(sum(number), 0) as queued,
       coalesce(sum(number) filter (where claimable and run_at <= clock_timestamp()), 0) as due,
       coalesce(extract(epoch from clock_timestamp()
           - greatest(min(run_at) filter (where claimable and run_at <= clock_timestamp()), timestamptz '0001-01-01')),
               0) as oldest_due_seconds
from (select run_at, last_id - first_id + 1 as number, true as claimable from {schema}.ready
      union all select run_at, last_id - first_id + 1, room = 'parked' from {schema}.waiting) stretch;

-- Every fault in the places of jobs, one row each; none while all is well. Reads all jobs that have not ended and all that
-- are kept, at one moment. It hashes, which the sessions of a daemon have switched off.
create function {schema}.check() returns table (job_id bigint, fault text)
    language plpgsql stable set search_path = pg_catalog, pg_temp
    set enable_hashjoin = on set enable_seqscan = on set enable_mergejoin = on set jit = off as $$
#variable_conflict use_column
begin
    return query
with stands as materialized (
    select 'ready' as room, '' as name, priority, run_at, kind, target, id
    from {schema}.ready cross join lateral generate_series(first_id, last_id) id
  union all
    select room, name, priority, run_at, kind, target, id
    from {schema}.waiting cross join lateral generate_series(first_id, last_id) id
  union all
    select 'leases', '', null, null, kind, nullif(target, ''), id from {schema}.in_hand
),
places as materialized (
    select id, count(*) as number, string_agg(room, ' and ' order by room) as rooms from stands group by id
),
named as materialized (
    select e.state, e.kind, e.stale, e.at, job.id
    from {schema}.endings e cross join lateral unnest(e.jobs) as stretch (ids)
    cross join lateral generate_series(lower(stretch.ids), upper(stretch.ids) - 1) as job (id)
)
select job.id, 'is queued and stands nowhere' from {schema}.job_rows job
where job.state = 'queued' and not exists (select from places where places.id = job.id)
union all
select id, 'stands in several places: ' || rooms from places where number > 1
union all
select stands.id, format('stands in %s and is %s', stands.room, coalesce(job.state, 'not there'))
from stands left join {schema}.job_rows job on job.id = stands.id where job.state is distinct from 'queued'
union all
select job.id, format('stands in %s as another one: other kind, target, priority or time', stands.room)
from stands join {schema}.job_rows job on job.id = stands.id
where (stands.kind, stands.target) is distinct from (job.kind, job.target)
   or stands.room <> 'leases' and (stands.priority, stands.run_at) is distinct from (job.priority, job.run_at)
union all
-- What looks for a job in hand asks the span first, which goes from the first job of the claim to its last.
select lower(lease.jobs), 'stands in a lease with another span' from {schema}.leases lease
where not isempty(lease.jobs) and not (lease.span @> lease.jobs and not lower_inf(lease.span) and not upper_inf(lease.span))
union all
select stands.id, 'stands behind nobody' from stands
left join {schema}.target_holders holder on holder.target = stands.name
where stands.room = 'behind' and (holder.job_id is null or holder.job_id = stands.id)
union all
select job.id, 'its holder is asked, and there is none' from {schema}.job_rows job
where job.request is not null and not exists (select from stands where stands.room = 'leases' and stands.id = job.id)
union all
select job.id, format('is %s and no ending names it as it is', job.state) from {schema}.job_rows job
where job.state in ('succeeded', 'failed', 'canceled') and not (job.state = 'failed' and job.target is not null
    and job.cleared_at is null)
  and not exists (select from named where named.id = job.id and named.at >= job.finished_at
                    and named.state = job.state and named.kind = job.kind and named.stale = (job.stale_at is not null));
end $$;

-- One row an event. Newly committed events appear once a node, or any caller of order_events, has put them in order.
create view {schema}.events as
select log.last - log.size + nth as id, coalesce(log.ats[nth], log.at) as at, log.type,
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
       term is not null and expires_at > clock_timestamp() as is_held, runs, run_seconds, running_since
from {schema}.duties;

revoke execute on all functions in schema {schema} from public;
