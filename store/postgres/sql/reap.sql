-- reap: ends leases that have run out by the rules of their kinds, at most `batch`; skips rows that are locked
-- Those with a target are ended by a call of their own, since others hear of it; a call for the rest says, by a row
-- without id, whether there are such. A request to cancel or to pause goes before the rules.
with now as materialized (select clock_timestamp() as at),
expired as materialized (
    select job.id, job.kind, job.attempt, job.max_attempts, job.forgiven, job.lease_expires_at, job.request, job.target
    from {schema}.job_rows job
    where job.state in ('assigned', 'running') and job.lease_expires_at <= (select at from now)
      and (job.target is not null) = %(targeted)s
    order by job.id limit %(batch)s for no key update skip locked
),
held as materialized (
    select holder.target from {schema}.target_holders holder
    where %(targeted)s and holder.target = any (array(select target from expired)) for update skip locked
),
judged as materialized (
    select expired.id, expired.lease_expires_at, expired.request,
           case when expired.request = 'cancel' then 'canceled' when expired.request = 'pause' then 'paused'
                when expired.attempt >= coalesce(expired.max_attempts,
                         coalesce(rule.max_attempts, %(default_max_attempts)s) + expired.forgiven)
                then 'failed'
                else case coalesce(rule.on_lease_lost, %(default_on_lease_lost)s)
                     when 'fail' then 'failed' when 'pause' then 'paused' else 'queued' end end as state
    from expired left join unnest(%(kinds)s::text[], %(on_lease_lost)s::text[], %(max_attempts)s::int[])
         as rule (kind, on_lease_lost, max_attempts) on rule.kind = expired.kind
    where not %(targeted)s or expired.target in (select target from held)
       or not exists (select from {schema}.target_holders holder where holder.target = expired.target)
),
reaped as (
    update {schema}.job_rows job
    set state = judged.state, finished_at = now.at, lease_expires_at = null, heartbeat_at = null,
        last_outcome = case when judged.state = 'queued' then null else 'lost' end,
        reason = case when judged.request = 'cancel' then 'canceled on request'
                      when judged.request = 'pause' then 'Job was interrupted by user'
                      when judged.state = 'paused' then 'its lease was lost' end,
        request = null, requested_at = null,
        error = jsonb_build_object('type', 'lease_lost', 'message', format(
            'attempt %%s: node %%s did not renew its lease, which ran out at %%s', job.attempt, job.node,
            to_char(judged.lease_expires_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
    from judged, now
    where job.id = judged.id and job.state in ('assigned', 'running')
    returning job.id, job.kind, job.attempt, job.node, job.worker, job.started_at, job.finished_at, job.state, job.error,
              job.target, job.reason, job.webhook
),
kept as (
    insert into {schema}.attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error)
    select id, attempt, node, worker, started_at, finished_at, 'lost', error from reaped where state = 'queued'
),
noted as (
    insert into {schema}.count_changes (queued, paused, failed, canceled)
    select count(*) filter (where state = 'queued'), count(*) filter (where state = 'paused'),
           count(*) filter (where state = 'failed'), count(*) filter (where state = 'canceled')
    from reaped having count(*) > 0
),
told as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, details)
    select type, count(*), array_agg(id), array_agg(kind), case when count(target) > 0 then array_agg(target) end,
           array_agg(attempt), array_agg(details)
    from (
        select id, kind, target, attempt, 'job.' || case state when 'queued' then 'requeued' else state end as type,
               case state when 'queued' then jsonb_build_object('outcome', 'lost', 'reason', 'its lease was lost')
                          when 'failed' then jsonb_build_object('error', {schema}.short_error(error))
                          else jsonb_build_object('reason', reason) end as details
        from reaped
    ) happened group by type returning 1
)
select id, kind, attempt, node, state, target from reaped
where (  -- as in settle.sql
    select count({schema}.call_out(id, kind, 'job.' || state, attempt, webhook)) from reaped
    where state in ('failed', 'canceled') and (select count(*) from told) > 0) >= 0
union all
select null, null, null, null, null, null
where not %(targeted)s and exists (
    select from {schema}.job_rows job
    where job.state in ('assigned', 'running') and job.lease_expires_at <= (select at from now) and job.target is not null)
