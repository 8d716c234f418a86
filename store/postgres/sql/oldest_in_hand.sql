-- oldest_in_hand: of the first `bound` jobs in hand the one that has run the longest, and how many leases have run out
with held as materialized (
    select id, kind, started_at, lease_expires_at from {schema}.job_rows
    where state in ('assigned', 'running') order by id limit %(bound)s
),
oldest as (select id, kind, started_at from held where started_at is not null order by started_at, id limit 1)
select oldest.id, oldest.kind, extract(epoch from clock_timestamp() - oldest.started_at)::float8, late.number
from (select count(*) as number from held where lease_expires_at < clock_timestamp()) late left join oldest on true
