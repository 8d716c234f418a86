-- renew: extends the leases that still stand and marks what has started; returns the ids extended, each with what its holder is asked for
-- A lease stands exactly in the states assigned and running. It is asked for in a way that tells the planner nothing:
-- believing that hardly any job is leased, it would begin with all jobs and look for these few among them.
with now as materialized (select clock_timestamp() as at),
kept as (
    update {schema}.job_rows job
    set lease_expires_at = now.at + make_interval(secs => %(lease_seconds)s), heartbeat_at = now.at,
        state = case when hold.started_age is null then job.state else 'running' end,
        late_start = job.state = 'assigned' and hold.started_age is not null,
        worker = coalesce(hold.worker, job.worker),
        started_at = coalesce(job.started_at, now.at - make_interval(secs => hold.started_age))
    from now, unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(workers)s::int[], %(started_ages)s::float8[])
         as hold (id, token, worker, started_age)
    where job.id = hold.id and job.claim_token = hold.token and coalesce(job.lease_expires_at, '-infinity') > '-infinity'
    returning job.id, job.request, job.kind, job.target, job.attempt, job.node, job.worker, job.late_start
),
told as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, workers, common)
    select 'job.started', count(*), array_agg(id), array_agg(kind), case when count(target) > 0 then array_agg(target) end,
           array_agg(attempt), array_agg(worker), jsonb_build_object('node', node)
    from kept where late_start group by node
)
select id, request from kept
