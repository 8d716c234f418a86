-- unpark: gives the first parked jobs of each capped kind back to the claim, as many as may run, at most `batch` a kind; none while as many jobs of all kinds are leased as may be
-- Whoever sends it holds the lock of lock_caps. Returns their places.
with room as materialized (
    select cap.kind, cap.most - (select count(*) from {schema}.job_rows job
                                 where job.kind = cap.kind and job.state in ('assigned', 'running')) as free
    from unnest(%(cap_kinds)s::text[], %(caps)s::int[]) as cap (kind, most)
    where exists (select from {schema}.job_rows waiting where waiting.parked and waiting.kind = cap.kind)
),
bound as materialized (
    select case when %(most)s::int is not null and exists (select from room)
                then greatest(0, %(most)s::int - (select count(*)::int from {schema}.job_rows job
                                                  where job.state in ('assigned', 'running'))) end as free
),
ready as materialized (
    select first.id from room cross join lateral (
        select job.id from {schema}.job_rows job
        where job.parked and job.kind = room.kind
        order by job.priority desc, job.run_at, job.id
        limit least(room.free, %(batch)s, (select free from bound)) for no key update skip locked) first
    where room.free > 0 and (select paused_at is null from {schema}.queue_state)
)
update {schema}.job_rows job set parked = false from ready where job.id = ready.id
returning job.priority, job.run_at, job.id
