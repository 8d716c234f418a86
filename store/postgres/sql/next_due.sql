-- next_due: seconds until the next queued job that is not yet due becomes due; null if there is none
with recursive now as materialized (select clock_timestamp() as at),
{levels}
select extract(epoch from min(later.run_at) - (select at from now))::float8
from levels cross join lateral (
    select job.run_at from {schema}.job_rows job
    where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority and job.run_at > (select at from now)
    order by job.run_at, job.id limit 1) later
