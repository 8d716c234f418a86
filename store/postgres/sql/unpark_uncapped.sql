-- unpark_uncapped: gives parked jobs of these kinds, which have no cap any more, back to the claim, at most `batch` a kind
with ready as materialized (
    select first.id from unnest(%(kinds)s::text[]) as uncapped (kind) cross join lateral (
        select job.id from {schema}.job_rows job
        where job.parked and job.kind = uncapped.kind
        order by job.priority desc, job.run_at, job.id
        limit %(batch)s for no key update skip locked) first
    where exists (select from {schema}.job_rows job where job.parked)
)
update {schema}.job_rows job set parked = false from ready where job.id = ready.id
