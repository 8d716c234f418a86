-- not_yet_due: counts queued jobs that are not yet due, up to `bound`, and those that are parked or stand behind, each up to `bound`
with recursive now as materialized (select clock_timestamp() as at),
{levels}
select count(*)::int + (
    select count(*)::int from (
        select from {schema}.job_rows job where job.parked limit %(bound)s) parked) + (
    select count(*)::int from (
        select from {schema}.job_rows job where job.behind limit %(bound)s) behind)
from (
    select 1 from levels cross join lateral (
        select 1 from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority and job.run_at > (select at from now)
        order by job.run_at, job.id limit %(bound)s) later
    limit %(bound)s) counted
