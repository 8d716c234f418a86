-- enqueue: makes all of these jobs or none, and returns their ids in order
insert into {schema}.job_rows (kind, payload, priority, run_at, max_attempts, state, target, webhook)
select job.kind, job.payload::jsonb, job.priority,
       coalesce(job.run_at, statement_timestamp() + make_interval(secs => coalesce(job.delay_seconds, 0))),
       job.max_attempts, case when job.hold then 'pending' else 'queued' end, job.target, job.webhook
from unnest(%(kind)s::text[], %(payload)s::text[], %(priority)s::smallint[], %(delay_seconds)s::float8[],
            %(run_at)s::timestamptz[], %(max_attempts)s::int[], %(hold)s::bool[], %(target)s::text[],
            %(webhook)s::text[])
     with ordinality as job (kind, payload, priority, delay_seconds, run_at, max_attempts, hold, target, webhook, place)
order by job.place
returning id
