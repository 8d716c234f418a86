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
         where job.rest = wanted.state and id > %(after)s and id <= %(until)s
         order by id limit %(span)s) one)
    union all
    (select held.id, held.state, held.kind, nullif(held.target, ''), job.priority, job.created_at, null, null
     from (select id, kind, target, case when started_at is null then 'assigned' else 'running' end as state
           from {schema}.first_in_hand(%(after)s, %(span)s)
           where %(leased)s and id <= %(until)s) held
     cross join lateral (select priority, created_at from {schema}.job_rows where id = held.id limit 1) job)
),
read_jobs as materialized (select * from scanned order by id limit %(span)s),
{in_hand_of_page},
judged as (
    select id, kind, standing.state,
           standing.state = any (%(states)s::text[])
           and cleared_at is null
           and (%(kinds)s::text[] is null or kind = any (%(kinds)s::text[]))
           and (%(targets)s::text[] is null or coalesce(target = any (%(targets)s::text[]), false))
           and (%(priorities)s::int[] is null or priority = any (%(priorities)s::int[]))
           and (%(older)s::float8 is null
                or case when standing.state in ('succeeded', 'failed', 'canceled') then finished_at else created_at end
                   < clock_timestamp() - make_interval(secs => %(older)s::float8)) as fits
    from read_jobs cross join lateral (select {state_of_page} as state) standing
)
select id, kind, state, fits from judged
where fits or id = (select max(id) from read_jobs)
order by id

-- control_many: acts on those of these jobs that still fit, as control does on one; skips rows that another transaction writes to
-- All are locked before the first action: acting on one may write to the next of its target, which a later lock would skip.
-- It waits for no row while it holds others, so it cannot deadlock with settlements; claims wait for nothing.
-- Returns the ids done, of those the ones whose holders were asked, the ids refused, and those that fit but were locked.
with fitting as materialized (
    select id from {schema}.job_rows
    where id = any (%(ids)s::bigint[]) and {may_stand} and cleared_at is null
      and (%(older)s::float8 is null
           or case when state in ('succeeded', 'failed', 'canceled') then finished_at else created_at end
              < clock_timestamp() - make_interval(secs => %(older)s::float8))
    order by id for no key update skip locked
),
acted as materialized (
    select one.id, done.state_before, done.requested, done.allowed
    from unnest(array(select id from fitting)) as one (id)
    cross join lateral {schema}.control_job(%(action)s, one.id, %(states)s::text[]) done
)
select array(select id from acted where allowed), array(select id from acted where requested),
       array(select id from acted where not allowed and state_before = any (%(states)s::text[])),
       array(select id from {schema}.job_rows
             where id = any (%(ids)s::bigint[]) and {may_stand} and cleared_at is null
               and id <> all (array(select id from acted)))

-- part in_hand_of_page: of the queued jobs in `read_jobs` those that are in hand; read from the leases alone that reach into the
-- same ids. The limit says what the planner should expect
in_hand_of_page as materialized (
    select member.id, member.id = any (lease.started) as has_started
    from (select min(id) as first_id, max(id) as last_id from read_jobs where state = 'queued') page
    cross join lateral (
        select jobs, started from {schema}.leases where span && int8range(page.first_id, page.last_id, '[]')) lease
    cross join lateral unnest(lease.jobs * int8multirange(int8range(page.first_id, page.last_id, '[]'))) as stretch (ids)
    cross join lateral generate_series(lower(stretch.ids), upper(stretch.ids) - 1) as member (id)
    where page.first_id is not null limit 20000
)

-- part state_of_page: the state of a job in `read_jobs`
case when state <> 'queued' then state
     when id in (select id from in_hand_of_page where has_started) then 'running'
     when id in (select id from in_hand_of_page) then 'assigned' else state end

-- part may_stand: whether a job may be in one of these states, as far as its row tells
state = any (array_replace(array_replace(%(states)s::text[], 'assigned', 'queued'), 'running', 'queued'))

-- pause_queue: no claim that starts after this takes a job; changes nothing if the queue is paused
update {schema}.queue_state set paused_at = clock_timestamp(), paused_by = %(by)s where paused_at is null

-- declare_tenant: the name of the tenant whose store this is
update {schema}.queue_state set tenant = %(tenant)s where tenant <> %(tenant)s

-- resume_queue: claims go on; changes nothing if the queue is not paused; wakes idle workers
with resumed as (
    update {schema}.queue_state set paused_at = null, paused_by = null where paused_at is not null returning only_row
)
select {schema}.hint('') from resumed
