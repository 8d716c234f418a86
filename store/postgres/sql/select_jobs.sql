-- select_jobs: looks through the next `span` jobs by id; returns those that fit, and the last one whether it fits or not
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
looked as materialized (select * from scanned order by id limit %(span)s),
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
    from looked
)
select id, kind, state, fits from judged
where fits or id = (select max(id) from looked)
order by id
