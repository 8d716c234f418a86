-- settle: ends attempts, each fenced by its claim token; returns the ids that changed nothing, since their lease was lost,
-- and those that a request has canceled or paused
-- A job that would go on, but for a request to cancel or to pause it, ends or pauses instead: no request is ever lost.
-- A lease stands exactly in the states assigned and running. It is asked for in a way that tells the planner nothing:
-- believing that hardly any job is leased, it would begin with all jobs and look for these few among them.
with now as materialized (select clock_timestamp() as at),
ended as materialized (  -- the shorter arrays are padded with nulls: what is null is as for a success
    select id, token, worker, coalesce(state, 'succeeded') as state, coalesce(outcome, 'succeeded') as outcome,
           started_age, ended_age, delay_seconds, result, error, reason, coalesce(forgive, false) as forgive, log, spent,
           percent, note, phase, phase_percent
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
    set state = case when job.request is null or ended.state not in ('queued', 'paused') then ended.state
                     when job.request = 'cancel' then 'canceled' else 'paused' end,
        worker = coalesce(ended.worker, job.worker),
        started_at = coalesce(job.started_at, now.at - make_interval(secs => ended.started_age)),
        finished_at = now.at - make_interval(secs => ended.ended_age),
        lease_expires_at = null, heartbeat_at = null,
        run_at = case when ended.state = 'queued' and ended.delay_seconds is not null and job.request is null
                      then now.at + make_interval(secs => ended.delay_seconds) else job.run_at end,
        last_outcome = case when ended.state <> 'queued' then ended.outcome when job.request is null then null
                            when ended.outcome = 'retrying' then 'failed' else ended.outcome end,
        result = ended.result::jsonb,
        error = case when ended.state = 'queued' and job.request is null then coalesce(ended.error::jsonb, job.error)
                     else ended.error::jsonb end,
        reason = case when job.request is null or ended.state not in ('queued', 'paused') then ended.reason
                      when job.request = 'cancel' then 'canceled on request' else 'Job was interrupted by user' end,
        request = null, requested_at = null,
        late_start = job.state = 'assigned' and ended.started_age is not null,
        progress = coalesce(ended.percent, job.progress),
        progress_note = case when ended.percent is null then job.progress_note else ended.note end,
        log = ended.log, spent = coalesce(ended.spent::jsonb, job.spent),
        forgiven = job.forgiven + ended.forgive::int,
        max_attempts = job.max_attempts + ended.forgive::int
    from ended, now
    where job.id = ended.id and job.claim_token = ended.token and coalesce(job.lease_expires_at, '-infinity') > '-infinity'
    returning job.id, job.attempt, job.node, job.worker, job.started_at, job.finished_at, job.state,
              ended.outcome, ended.error, ended.log, ended.state as wished,
              job.kind, job.target, job.webhook, job.run_at, job.reason, job.late_start,
              ended.percent, ended.note, ended.phase, ended.phase_percent
),
kept as (
    insert into {schema}.attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error, log)
    select id, attempt, node, worker, started_at, finished_at, outcome, error::jsonb, log from settled where state = 'queued'
),
noted as (
    insert into {schema}.count_changes (queued, paused, succeeded, failed, canceled)
    select count(*) filter (where state = 'queued'), count(*) filter (where state = 'paused'),
           count(*) filter (where state = 'succeeded'), count(*) filter (where state = 'failed'),
           count(*) filter (where state = 'canceled')
    from settled having count(*) > 0
),
happened as (  -- to each job in the order of the places; how a phase ended was told by settle_phases.sql
    select 1 as place, 'started' as what, id, kind, target, attempt, node, worker, null::jsonb as details
    from settled where late_start
  union all
    select 2, 'progress', id, kind, target, null, null, null,
           jsonb_build_object('overall', floor(percent + 0.5)::int, 'phase', phase,
                              'progress', coalesce(phase_percent, percent), 'note', note)
    from settled where percent is not null
  union all
    select 3, case when state <> 'queued' then state when outcome = 'retrying' then outcome else 'requeued' end,
           id, kind, target, attempt, null, null,
           case when state = 'succeeded' then null
                when state = 'failed' then jsonb_build_object('error', {schema}.short_error(error::jsonb))
                when state <> 'queued' then jsonb_build_object('reason', left(reason, 1000))
                when outcome <> 'retrying' then jsonb_build_object('outcome', outcome, 'reason', left(reason, 1000))
                else jsonb_build_object('error', {schema}.short_error(error::jsonb), 'run_at',
                         to_char(run_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) end
    from settled
),
told as (  -- as few aggregates as can be: to set one up costs more than a row does
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, workers, common, details)
    select 'job.' || what, cardinality(array_agg(id)), array_agg(id), array[kind], case when targeted then array_agg(target) end,
           case when place <> 2 then array_agg(attempt) end, case when place = 1 then array_agg(worker) end,
           case when place = 1 then jsonb_build_object('node', node) end,
           case when place <> 1 and what <> 'succeeded' then array_agg(details) end
    from (select *, target is not null as targeted from happened) told
    group by place, what, node, targeted, kind order by place
    returning 1
)
select array(select id from ended except select id from settled),
       array(select id from settled where state <> wished and state = 'canceled'),
       array(select id from settled where state <> wished and state = 'paused')
where (  -- after it was told: a message that nobody will get tells so itself
    select count({schema}.call_out(id, kind, 'job.' || state, attempt, webhook)) from settled
    where state in ('succeeded', 'failed', 'canceled') and (select count(*) from told) > 0
      and (webhook is not null or (select exists (select from {schema}.kind_rules rule where rule.webhook is not null)))) >= 0
