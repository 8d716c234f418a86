-- turns_of: the place of the job of each of these targets whose turn it is
select job.priority, job.run_at, job.id from unnest(%(targets)s::text[]) as wanted (target) cross join lateral (
    select job.priority, job.run_at, job.id from {schema}.job_rows job
    where job.target = wanted.target and job.state = 'queued' and not job.parked and not job.behind
    order by job.priority desc, job.run_at, job.id limit 1) job
