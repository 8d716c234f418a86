-- renew: extends the leases that still stand and marks what has started; returns the ids extended, each with what its holder is asked for
-- A lease stands exactly in the states assigned and running. It is asked for in a way that tells the planner nothing:
-- believing that hardly any job is leased, it would begin with all jobs and look for these few among them.
with now as materialized (select clock_timestamp() as at)
update {schema}.job_rows job
set lease_expires_at = now.at + make_interval(secs => %(lease_seconds)s), heartbeat_at = now.at,
    state = case when hold.started_age is null then job.state else 'running' end,
    worker = coalesce(hold.worker, job.worker),
    started_at = coalesce(job.started_at, now.at - make_interval(secs => hold.started_age))
from now, unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(workers)s::int[], %(started_ages)s::float8[])
     as hold (id, token, worker, started_age)
where job.id = hold.id and job.claim_token = hold.token and coalesce(job.lease_expires_at, '-infinity') > '-infinity'
returning job.id, job.request
