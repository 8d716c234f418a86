-- settle: ends attempts, each fenced by its claim token; returns the ids that changed nothing, since their lease was lost,
-- and those that a request has canceled or paused
-- A job that would go on, but for a request to cancel or to pause it, ends or pauses instead: no request is ever lost.
-- A lease stands exactly in the states assigned and running. It is asked for in a way that tells the planner nothing:
-- believing that hardly any job is leased, it would begin with all jobs and look for these few among them.
with now as materialized (select clock_timestamp() as at),
ended as materialized (  -- the shorter arrays are padded with nulls: what is null is as for a success
    select id, token, worker, coalesce(state, 'succeeded') as state, coalesce(outcome, 'succeeded') as outcome,
           started_age, ended_age, delay_seconds, result, error, reason, coalesce(forgive, false) as forgive, log, spent
    from unnest(
        %(ids)s::bigint[], %(tokens)s::uuid[], %(workers)s::int[], %(states)s::text[], %(outcomes)s::text[],
        %(started_ages)s::float8[], %(ended_ages)s::float8[], %(delays)s::float8[], %(results)s::text[],
        %(errors)s::text[], %(reasons)s::text[], %(forgive)s::bool[], %(logs)s::text[], %(spents)s::text[])
    as ended (id, token, worker, state, outcome, started_age, ended_age, delay_seconds, result, error, reason, forgive, log, spent)
),
settled as (
    update {schema}.job_rows job
    set state = case when job.request is null or ended.state not in ('queued', 'paused') then ended.state
                     when job.request = 'cancel' then 'canceled' else 'paused' end,
        worker = coalesce(ended.worker, job.worker),
        started_at = coalesce(job.started_at, now.at - make_interval(secs => ended.started_age)),
        finished_at = now.at - make_interval(secs => ended.ended_age),
        lease_expires_at = null, heartbeat_at = null,
        run_at = case when ended.state = 'queued' and ended.delay_seconds is not null
                      then now.at + make_interval(secs => ended.delay_seconds) else job.run_at end,
        last_outcome = case when ended.state <> 'queued' then ended.outcome when job.request is null then null
                            when ended.outcome = 'retrying' then 'failed' else ended.outcome end,
        result = ended.result::jsonb,
        error = case when ended.state = 'queued' then coalesce(ended.error::jsonb, job.error) else ended.error::jsonb end,
        reason = case when job.request is null or ended.state not in ('queued', 'paused') then ended.reason
                      when job.request = 'cancel' then 'canceled on request' else 'Job was interrupted by user' end,
        request = null, requested_at = null,
        log = ended.log, spent = coalesce(ended.spent::jsonb, job.spent),
        forgiven = job.forgiven + ended.forgive::int,
        max_attempts = job.max_attempts + ended.forgive::int
    from ended, now
    where job.id = ended.id and job.claim_token = ended.token and coalesce(job.lease_expires_at, '-infinity') > '-infinity'
    returning job.id, job.attempt, job.node, job.worker, job.started_at, job.finished_at, job.state,
              ended.outcome, ended.error, ended.log, ended.state as wished
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
)
select array(select id from ended except select id from settled),
       array(select id from settled where state <> wished and state = 'canceled'),
       array(select id from settled where state <> wished and state = 'paused')
