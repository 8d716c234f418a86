-- enqueue: makes all of these jobs or none, and returns their ids in order
insert into {schema}.job_rows (kind, payload, priority, run_at, max_attempts, state, target, webhook)
select job.kind, job.payload::jsonb, job.priority,
       coalesce(job.run_at, statement_timestamp() + make_interval(secs => coalesce(job.delay_seconds, 0))),
       job.max_attempts, case when job.hold then 'pending' else 'queued' end, job.target, job.webhook
from unnest(%(kinds)s::text[], %(payloads)s::text[], %(priorities)s::smallint[], %(delays)s::float8[],
            %(run_ats)s::timestamptz[], %(max_attempts)s::int[], %(holds)s::bool[], %(targets)s::text[],
            %(webhooks)s::text[])
     with ordinality as job (kind, payload, priority, delay_seconds, run_at, max_attempts, hold, target, webhook, place)
order by job.place
returning id
