-- Acting on jobs, and pausing the queue.

-- control: acts on one job, or asks its holder to: cancel, pause, resume, release or clear
select known, state_before, state_after, requested, allowed from {schema}.control_job(%(action)s, %(id)s)

-- select_jobs: reads the next `span` jobs by id; returns those that fit, and the last one whether it fits or not
with scanned as materialized (
    (select id, state, kind, target, priority, created_at, finished_at, cleared_at
     from {schema}.job_rows
     where %(walks)s and id > %(after)s and id <= %(until)s
     order by id limit %(span)s)
    union all
    (select one.* from unnest(%(resting)s::text[]) as wanted (state) cross join lateral (
         select id, job.state, kind, target, priority, created_at, finished_at, cleared_at
         from {schema}.job_rows job
         where job.state in ('pending', 'paused', 'failed', 'canceled') and job.state = wanted.state
           and id > %(after)s and id <= %(until)s
         order by id limit %(span)s) one)
    union all
    (select id, state, kind, target, priority, created_at, finished_at, cleared_at
     from {schema}.job_rows
     where %(leased)s and state in ('assigned', 'running') and id > %(after)s and id <= %(until)s
     order by id limit %(span)s)
),
read_jobs as materialized (select * from scanned order by id limit %(span)s),
judged as (
    select id, kind, state,
           state = any (%(states)s::text[])
           and cleared_at is null
           and (%(kinds)s::text[] is null or kind = any (%(kinds)s::text[]))
           and (%(targets)s::text[] is null or coalesce(target = any (%(targets)s::text[]), false))
           and (%(priorities)s::int[] is null or priority = any (%(priorities)s::int[]))
           and (%(older)s::float8 is null
                or case when state in ('succeeded', 'failed', 'canceled') then finished_at else created_at end
                   < clock_timestamp() - make_interval(secs => %(older)s::float8)) as fits
    from read_jobs
)
select id, kind, state, fits from judged
where fits or id = (select max(id) from read_jobs)
order by id

-- control_many: acts on those of these jobs that still fit, as control does on one; skips rows that another transaction writes to
-- All are locked before the first action: acting on one may write to the next of its target, which a later lock would skip.
-- It waits for no row while it holds others, so it cannot deadlock with claims and settlements.
-- Returns the ids done, of those the ones whose holders were asked, the ids refused, and those that fit but were locked.
with picked as materialized (
    select id from {schema}.job_rows
    where id = any (%(ids)s::bigint[]) and state = any (%(states)s::text[]) and cleared_at is null
      and (%(older)s::float8 is null
           or case when state in ('succeeded', 'failed', 'canceled') then finished_at else created_at end
              < clock_timestamp() - make_interval(secs => %(older)s::float8))
    order by id for no key update skip locked
),
acted as materialized (
    select one.id, done.requested, done.allowed
    from unnest(array(select id from picked)) as one (id) cross join lateral {schema}.control_job(%(action)s, one.id) done
)
select array(select id from acted where allowed), array(select id from acted where requested),
       array(select id from acted where not allowed),
       array(select id from {schema}.job_rows
             where id = any (%(ids)s::bigint[]) and state = any (%(states)s::text[]) and cleared_at is null
               and id <> all (array(select id from acted)))

-- pause_queue: no claim that starts after this takes a job; changes nothing if the queue is paused
update {schema}.queue_state set paused_at = clock_timestamp(), paused_by = %(by)s where paused_at is null

-- resume_queue: claims go on; changes nothing if the queue is not paused; wakes idle workers
with resumed as (
    update {schema}.queue_state set paused_at = null, paused_by = null where paused_at is not null returning only_row
)
select pg_notify('{channel}', '') from resumed
