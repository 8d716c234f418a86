-- observe: counts due and claimable jobs up to `bound`, how long the first of them waits, whether any are parked; what room the other nodes have, and those of them before this one by id; the lot of what is due; and how many more jobs may be leased
with recursive now as materialized (select clock_timestamp() as at),
{levels},
due as materialized (
    select first.run_at
    from levels cross join lateral (
        select job.run_at from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority and job.run_at <= (select at from now)
          /*more{*/ and (job.run_at, job.id) >= (levels.first_run_at, levels.first_id) /*}*/
        order by job.run_at, job.id limit %(bound)s) first
    limit %(bound)s
)
select (select count(*) from due)::int,
       coalesce((select extract(epoch from (select at from now) - min(run_at)) from due), 0)::float8,
       (select paused_at is not null from {schema}.queue_state),
       exists (select from {schema}.job_rows job where job.parked),
       others.free, others.free_before, others.unhired, others.unhired_before,
       coalesce((select (extract(epoch from min(run_at)) * 1000000)::bigint from due), 0),
       case when %(most)s::int is not null
            then greatest(0, %(most)s::int - (select count(*)::int from {schema}.job_rows job where job.state in ('assigned', 'running'))) end
from (select coalesce(sum(room.free), 0)::int as free,
             coalesce(sum(room.free) filter (where room.is_before), 0)::int as free_before,
             coalesce(sum(room.unhired), 0)::int as unhired,
             coalesce(sum(room.unhired) filter (where room.is_before), 0)::int as unhired_before
      from (select greatest(0, node.max_count - node.busy) as free,
                   greatest(0, node.max_count - node.busy - node.idle) as unhired,
                   node.id < %(me)s::uuid as is_before
            from {schema}.nodes node, now
            where %(me)s::uuid is not null and node.id <> %(me)s::uuid and node.phase = 'running'
              and node.heartbeat_at > now.at - make_interval(secs => %(pauses)s * node.pause_seconds)) room) others
