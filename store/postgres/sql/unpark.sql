-- unpark: gives the first parked jobs of each capped kind back to the claim, as many as may run, at most `batch` a kind; none while as many jobs of all kinds are leased as may be
-- Whoever sends it holds the lock of lock_caps.
with leased as materialized (
    select job.kind, count(*) as number from {schema}.job_rows job
    where job.state in ('assigned', 'running') and exists (select from {schema}.job_rows waiting where waiting.parked)
    group by job.kind
),
room as materialized (
    select cap.kind, cap.most - coalesce(leased.number, 0) as free
    from unnest(%(cap_kinds)s::text[], %(caps)s::int[]) as cap (kind, most)
    left join leased on leased.kind = cap.kind
),
bound as materialized (
    select case when %(most)s::int is not null
                then greatest(0, %(most)s::int - (select coalesce(sum(number), 0)::int from leased)) end as free
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
