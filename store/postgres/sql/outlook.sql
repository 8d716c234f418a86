-- outlook: whether nothing becomes claimable here without a hint but by the passing of time; whether jobs are due; seconds until the next one is. No row where the node `me` is not known
-- Who has jobs in hand may put them off, or pass their targets on, without a hint. Who is writing jobs may have found the
-- bell being rung by somebody else, who is done before: it is known by the lock that every writer of the table holds.
with recursive now as materialized (select clock_timestamp() as at),
{levels},
seen as materialized (
    select (select paused_at is null from {schema}.queue_state) and exists (
               select from levels cross join lateral (
                   select 1 from {schema}.job_rows job
                   where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority
                     and job.run_at <= (select at from now)
                   order by job.run_at, job.id limit 1) first) as due,
           (select extract(epoch from min(later.run_at) - (select at from now))::float8
            from levels cross join lateral (
                select job.run_at from {schema}.job_rows job
                where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority
                  and job.run_at > (select at from now)
                order by job.run_at, job.id limit 1) later) as next_due_seconds
)
select not (due
            or exists (select from {schema}.job_rows job where job.state in ('assigned', 'running'))
            or exists (select from {schema}.job_rows job where job.parked)
            or exists (select from pg_locks writing
                       where writing.locktype = 'relation' and writing.relation = '{schema}.job_rows'::regclass
                         and writing.database = (select oid from pg_database where datname = current_database())
                         and writing.mode = 'RowExclusiveLock' and writing.pid is distinct from pg_backend_pid())),
       due, next_due_seconds
from seen where exists (select from {schema}.nodes node where node.id = %(me)s)
