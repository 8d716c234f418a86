-- know_schedules: where these schedules stand; one that is new begins now
with begun as (
    insert into {schema}.schedules (name)
    select name from unnest(%(names)s::text[]) name
    where not exists (select from {schema}.schedules known where known.name = name.name) order by name
    on conflict do nothing
    returning name, last_slot, last_fired_at, last_job_id, fired, skipped, missed, paused_at
),
known as (
    select name, last_slot, last_fired_at, last_job_id, fired, skipped, missed, paused_at
    from {schema}.schedules where name = any (%(names)s::text[])
  union all
    select * from begun
)
select known.name, known.last_slot, known.last_fired_at, known.last_job_id, job.state, known.fired, known.skipped,
       known.missed, known.paused_at, clock_timestamp()
from known left join {schema}.job_rows job on job.id = known.last_job_id
order by known.name
