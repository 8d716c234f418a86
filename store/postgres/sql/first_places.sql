-- first_places: where in each priority the first claimable job is, and how many entries of the index that came by for nothing; takes and locks none
with recursive now as materialized (
    select clock_timestamp() as at, pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass) as walked_before
),
{levels},
firsts as (
    select first.priority, first.run_at, first.id from levels cross join lateral (
        select job.priority, job.run_at, job.id from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority and job.run_at <= (select at from now)
        order by job.run_at, job.id limit 1) first
)
select coalesce(jsonb_agg(jsonb_build_array(priority, run_at, id)), '[]')::text,
       (pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass) - (select walked_before from now))::float8
from firsts
