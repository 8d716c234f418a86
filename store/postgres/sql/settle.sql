-- settle: ends attempts, each fenced by its claim token; returns the ids that changed nothing, since their lease was lost,
-- and those that a request has canceled or paused
-- A job that would go on, but for a request to cancel or to pause it, ends or pauses instead: no request is ever lost.
-- A lease stands exactly in the states assigned and running. It is asked for in a way that tells the planner nothing:
-- believing that hardly any job is leased, it would begin with all jobs and look for these few among them.
-- What has happened is summed up once; whatever the sums say has not happened is not looked for.
with now as materialized (select clock_timestamp() as at),
ended as materialized (  -- the shorter arrays are padded with nulls: what is null is as for a success
    select id, token, worker, coalesce(state, 'succeeded') as state, coalesce(outcome, 'succeeded') as outcome,
           started_age, ended_age, delay_seconds, result, error, reason, coalesce(forgive, false) as forgive, log, spent,
           percent, note, phase, phase_percent, coalesce(state in ('queued', 'paused'), false) as goes_on
    from unnest(
        %(ids)s::bigint[], %(tokens)s::uuid[], %(workers)s::int[], %(states)s::text[], %(outcomes)s::text[],
        %(started_ages)s::float8[], %(ended_ages)s::float8[], %(delays)s::float8[], %(results)s::text[],
        %(errors)s::text[], %(reasons)s::text[], %(forgive)s::bool[], %(logs)s::text[], %(spents)s::text[],
        %(percents)s::float4[], %(notes)s::text[], %(phases)s::text[], %(phase_percents)s::float4[])
    as ended (id, token, worker, state, outcome, started_age, ended_age, delay_seconds, result, error, reason, forgive, log, spent,
              percent, note, phase, phase_percent)
),
settled as (
    update {schema}.job_rows job
    set state = case when job.request is null or not ended.goes_on then ended.state
                     when job.request = 'cancel' then 'canceled' else 'paused' end,
        worker = coalesce(ended.worker, job.worker),
        started_at = coalesce(job.started_at, (select at from now) - make_interval(secs => ended.started_age)),
        finished_at = (select at from now) - make_interval(secs => ended.ended_age),
        lease_expires_at = null, heartbeat_at = null,
        run_at = case when ended.delay_seconds is not null and ended.state = 'queued' and job.request is null
                      then (select at from now) + make_interval(secs => ended.delay_seconds) else job.run_at end,
        last_outcome = case when not ended.goes_on or ended.state <> 'queued' then ended.outcome when job.request is null then null
                            when ended.outcome = 'retrying' then 'failed' else ended.outcome end,
        result = ended.result::jsonb,
        error = case when ended.goes_on and ended.state = 'queued' and job.request is null
                     then coalesce(ended.error::jsonb, job.error) else ended.error::jsonb end,
        reason = case when job.request is null or not ended.goes_on then ended.reason
                      when job.request = 'cancel' then 'canceled on request' else 'Job was interrupted by user' end,
        request = null, requested_at = null,
        late_start = ended.started_age is not null and job.state = 'assigned',
        progress = coalesce(ended.percent, job.progress),
        progress_note = case when ended.percent is null then job.progress_note else ended.note end,
        log = ended.log, spent = coalesce(ended.spent::jsonb, job.spent),
        forgiven = job.forgiven + ended.forgive::int,
        max_attempts = job.max_attempts + ended.forgive::int
    from ended
    where job.id = ended.id and job.claim_token = ended.token and coalesce(job.lease_expires_at, '-infinity') > '-infinity'
    returning job.id, job.attempt, job.state, job.kind, job.target, job.worker, job.node, job.late_start, job.webhook, ended.goes_on,
              ended.percent, job.started_at, job.finished_at, ended.outcome, ended.error, ended.log, ended.state as wished,
              job.run_at, job.reason, ended.note, ended.phase, ended.phase_percent
),
sums as materialized (
    select count(*) as all_of_them, count(*) filter (where state = 'succeeded') as succeeded,
           count(*) filter (where state = 'queued') as queued, count(*) filter (where state = 'paused') as paused,
           count(*) filter (where state = 'failed') as failed, count(*) filter (where state = 'canceled') as canceled,
           count(*) filter (where late_start) as late, count(percent) as noted, count(webhook) as own_webhooks,
           count(*) filter (where goes_on and state <> wished) as turned
    from settled
),
kept as (
    insert into {schema}.attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error, log)
    select id, attempt, node, worker, started_at, finished_at, outcome, error::jsonb, log from settled
    where (select queued from sums) > 0 and state = 'queued'
),
counted as (
    insert into {schema}.count_changes (queued, paused, succeeded, failed, canceled)
    select queued, paused, succeeded, failed, canceled from sums where all_of_them > 0
),
told as (  -- to each job in this order; how a phase ended was told by settle_phases.sql. One value stands for all that are equal.
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, workers, common, details)
    select 'job.started', count(*), array_agg(id), array[kind], case when target is not null then array_agg(target) end,
           case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end, array_agg(worker),
           jsonb_build_object('node', node), null
    from settled where (select late from sums) > 0 and late_start
    group by node, kind, target is not null
  union all
    select 'job.progress', count(*), array_agg(id), array[kind], case when target is not null then array_agg(target) end,
           null, null, null,
           array_agg(jsonb_build_object('overall', floor(percent + 0.5)::int, 'phase', phase,
                                        'progress', coalesce(phase_percent, percent), 'note', note))
    from settled where (select noted from sums) > 0 and percent is not null
    group by kind, target is not null
  union all
    select 'job.succeeded', count(*), array_agg(id), array[kind], case when target is not null then array_agg(target) end,
           case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end, null, null, null
    from settled where (select succeeded from sums) > 0 and state = 'succeeded'
    group by kind, target is not null
  union all
    select 'job.' || what, count(*), array_agg(id), array[kind], case when target is not null then array_agg(target) end,
           array_agg(attempt), null, null, array_agg(details)
    from (select id, kind, target, attempt,
                 case when state <> 'queued' then state when outcome = 'retrying' then outcome else 'requeued' end as what,
                 case when state = 'failed' then jsonb_build_object('error', {schema}.short_error(error::jsonb))
                      when state <> 'queued' then jsonb_build_object('reason', left(reason, 1000))
                      when outcome <> 'retrying' then jsonb_build_object('outcome', outcome, 'reason', left(reason, 1000))
                      else jsonb_build_object('error', {schema}.short_error(error::jsonb), 'run_at',
                               to_char(run_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) end as details
          from settled where (select all_of_them > succeeded from sums) and state <> 'succeeded') other
    group by what, kind, target is not null
    returning 1
)
select case when (select all_of_them from sums) = cardinality(%(ids)s::bigint[]) then '{}'::bigint[]
            else array(select id from ended except select id from settled) end,
       array(select id from settled where (select turned from sums) > 0 and goes_on and state <> wished and state = 'canceled'),
       array(select id from settled where (select turned from sums) > 0 and goes_on and state <> wished and state = 'paused')
where (  -- after it was told: a message that nobody will get tells so itself
    select count({schema}.call_out(id, kind, 'job.' || state, attempt, webhook)) from settled
    where state in ('succeeded', 'failed', 'canceled') and (select count(*) from told) > 0
      and (select own_webhooks > 0 or exists (select from {schema}.kind_rules rule where rule.webhook is not null) from sums)) >= 0
