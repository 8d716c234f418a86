-- pick_expired: locks the next stale jobs that are to be deleted, at most `batch`; skips rows that are locked
-- Walks along job_rows_stale as mark_stale does. Returns the ids, and where the next batch begins, unless that was all.
with recursive now as materialized (select clock_timestamp() as at),
rules as materialized (
    select state, kind, age from unnest(%(states)s::text[], %(kinds)s::text[], %(ages)s::float8[]) as rule (state, kind, age)
),
groups (state, kind) as (
    (select job.state, job.kind from {schema}.job_rows job
     where job.stale_at is not null and (job.state, job.kind) >= (%(after_state)s::text, %(after_kind)s::text)
     order by job.state, job.kind limit 1)
    union all
    select further.state, further.kind from groups cross join lateral (
        select job.state, job.kind from {schema}.job_rows job
        where job.stale_at is not null and (job.state, job.kind) > (groups.state, groups.kind)
        order by job.state, job.kind limit 1) further
),
looked as materialized (
    select groups.state, groups.kind, due.finished_at, due.id
    from groups
    cross join lateral (
        select rules.age,
               (groups.state, groups.kind) = (%(after_state)s::text, %(after_kind)s::text) as begun
        from rules where rules.state = groups.state and coalesce(rules.kind, groups.kind) = groups.kind
        order by rules.kind nulls last limit 1) rule
    cross join lateral (
        select job.finished_at, job.id from {schema}.job_rows job
        where job.stale_at is not null and job.state = groups.state and job.kind = groups.kind
          and job.finished_at <= (select at from now) - make_interval(secs => rule.age)
          and (job.finished_at, job.id) > (
              case when rule.begun then %(after_at)s::timestamptz else '-infinity' end,
              case when rule.begun then %(after_id)s::bigint else 0 end)
        order by job.finished_at, job.id limit %(batch)s) due
    limit %(batch)s
),
picked as materialized (
    select job.id from looked join {schema}.job_rows job on job.id = looked.id and job.finished_at = looked.finished_at
    where job.state in ('succeeded', 'failed', 'canceled') and job.stale_at is not null
      and (job.state <> 'failed' or job.target is null or job.cleared_at is not null)
      and not exists (select from {schema}.webhooks waits where waits.job_id = job.id and waits.state = 'waiting')
    order by job.id for update of job skip locked
)
select array(select id from picked), last.state, last.kind, last.finished_at, last.id
from (select count(*) as number from looked) looks left join lateral (
    select * from looked order by state desc, kind desc, finished_at desc, id desc limit 1) last on looks.number = %(batch)s
