-- Making jobs and reading them. {job_columns} are those of a `JobRecord`, {brief_columns} without what may be large; {new_jobs} are
-- jobs that are asked for, with a column for each of their options.

-- enqueue: makes all of these jobs or none, and returns their ids in order
insert into {schema}.job_rows (kind, payload, priority, run_at, max_attempts, state, target, traceparent, webhook)
select job.kind, job.payload,
       coalesce(job.priority, (select rule.priority from {schema}.kind_rules rule where rule.kind = job.kind), 0),
       coalesce(job.run_at, statement_timestamp() + make_interval(secs => coalesce(job.delay_seconds, 0))),
       job.max_attempts, case when job.hold then 'pending' else 'queued' end, job.target, job.traceparent, job.webhook
from {new_jobs}
order by job.place
returning id

-- enqueue_keyed: makes these jobs, except those whose key is held; returns for each which job it is, and whether it is new
select id, is_new from {schema}.enqueue_keyed(array(select to_jsonb(job) from {new_jobs} order by job.place))

-- jobs: jobs newest first, filtered, at most `bound` of the first `span` that each walk comes by; at which job the walks ended, if
-- not at the last, when that was made, and how many they came by
-- Jobs at rest are walked through along their index, those in hand by their leases, queued ones by their places, if the line is
-- no longer than `span` stretches; where other states are wanted too, all jobs by their ids. The bounds of a walk stand in one row,
-- so that any plan looks them up.
with reach as materialized (
    select least(%(before_id)s::bigint, 9223372036854775807, {schema}.first_made_since(%(until)s::timestamptz + {margin}),
                 (select least(nullif(held.job_id, 0), 9223372036854775806) + 1
                  from {schema}.dedup_keys held where held.key = %(dedup_key)s::text)) as below,
           greatest({schema}.first_made_since(case when not %(by_end)s::boolean then %(since)s::timestamptz end - {margin}),
                    %(after_id)s::bigint + 1, -9223372036854775807) as first
),
line as materialized (
    select * from (
        select first_id, last_id, kind, target from {schema}.ready where %(lines_up)s::boolean
        union all
        select first_id, last_id, kind, target from {schema}.waiting where %(lines_up)s::boolean) stretch
    limit %(span)s + 1
),
short as materialized (select %(lines_up)s::boolean and count(*) <= %(span)s as so from line),
walked as materialized (
    (select job.id, row_number() over (order by job.id desc) as nth,
            {fits} and (%(states)s::text[] is null or job.state = any (%(states)s::text[])
                and (job.state <> 'queued' or not exists (
                select from {schema}.leases lease where lease.span @> job.id and lease.jobs @> job.id))) as fits
     from (select * from {schema}.job_rows met
           where %(walks)s::boolean and not (select so from short)
             and met.id < (select below from reach) and met.id >= (select first from reach)
           order by met.id desc limit %(span)s) job)
    union all
    (select job.id, row_number() over (partition by job.rest order by job.id desc), {fits}
     from unnest(%(resting)s::text[]) as wanted (state) cross join lateral (
         select * from {schema}.job_rows met
         where (not %(walks)s::boolean or (select so from short))
           and met.rest is not null and (met.rest, met.id) < (wanted.state, (select below from reach))
           and (met.rest, met.id) >= (wanted.state, (select first from reach))
         order by met.rest desc, met.id desc limit %(span)s) job)
    union all
    (select job.id, row_number() over (order by job.id desc), {fits}
     from (select one.id from line cross join lateral generate_series(last_id, first_id, -1) as one (id)
           where (select so from short) and one.id < (select below from reach) and one.id >= (select first from reach)
             and (%(kind)s::text is null or line.kind = %(kind)s) and (%(target)s::text is null or line.target = %(target)s)
           order by last_id desc, one.id desc limit %(span)s) queued
     cross join lateral (select * from {schema}.job_rows met where met.id = queued.id limit 1) job)
    union all
    (select job.id, row_number() over (order by job.id desc), {fits}
     from {schema}.last_in_hand((select below from reach), %(span)s,
                                %(states)s::text[], %(kind)s::text, %(target)s::text) as held (id)
     cross join lateral (select * from {schema}.job_rows met where met.id = held.id limit 1) job
     where %(states)s::text[] && array['assigned', 'running'] and held.id >= (select first from reach))
),
ended as materialized (
    select last.id, (select job.created_at from {schema}.job_rows job where job.id = last.id) as made_at,
           (select count(*) from walked where last.id is null or walked.id >= last.id) as number
    from (select max(id) as id from walked where nth = %(span)s) last
),
page as materialized (
    select walked.id as of_page from walked cross join ended where walked.fits and (ended.id is null or walked.id >= ended.id)
    order by walked.id desc limit %(bound)s
)
select ended.id, ended.made_at, ended.number, job.*
from ended left join lateral (
    select {job_columns}
    from page cross join lateral (select * from {schema}.live_jobs where id = of_page limit 1) job
) job on true
order by job.id desc

-- part fits: whether a job is one that is asked for
(%(kind)s::text is null or job.kind = %(kind)s::text)
            and (%(target)s::text is null or job.target = %(target)s::text)
            and (%(dedup_key)s::text is null or job.dedup_key = %(dedup_key)s::text)
            and (not %(by_end)s::boolean or job.state in ('succeeded', 'failed', 'canceled'))
            and (%(since)s::timestamptz is null
                 or case when %(by_end)s::boolean then job.finished_at else job.created_at end >= %(since)s::timestamptz)
            and (%(until)s::timestamptz is null
                 or case when %(by_end)s::boolean then job.finished_at else job.created_at end < %(until)s::timestamptz)
            and (%(error)s::text is null or job.error is not null and strpos(
                lower(concat_ws(': ', job.error ->> 'type', coalesce(job.error ->> 'message', job.error::text)) collate "C"),
                lower(%(error)s::text collate "C")) > 0)

-- part margin: see MARGIN_SECONDS
interval '1 minute'

-- jobs_of: the jobs with these ids
select {job_columns}
from {schema}.live_jobs
where id = any (%(ids)s::bigint[])
order by id

-- briefs: the jobs with these ids, without what may be large
select {brief_columns} from {schema}.live_jobs where id = any (%(ids)s::bigint[])

-- traceparents: of those of these jobs that have one
select id, traceparent from {schema}.job_rows where id = any (%(ids)s::bigint[]) and traceparent is not null

-- attempts: the ended attempts of these jobs that were not their last, oldest first
select job_id, attempt, node, worker, started_at, finished_at, outcome, error::text, log
from {schema}.attempts where job_id = any (%(ids)s::bigint[]) order by job_id, attempt

-- job_log: the state of a job, and what its attempts from one on have logged: of those that have ended the whole text, at most
-- `bound`; of the one in hand the parts behind a line, each with the number of its first
select job.state, part.attempt, part.first, part.words
from {schema}.live_jobs job left join lateral (
    (select past.attempt, null::bigint as first, past.log as words from {schema}.attempts past
     where past.job_id = job.id and past.attempt >= %(attempt)s and past.log is not null
     order by past.attempt limit %(bound)s)
    union all
    select job.attempt, null, job.log where job.last_outcome is not null and job.log is not null and job.attempt >= %(attempt)s
    union all
    select job.attempt, said.first, said.words from {schema}.live_logs said
    where said.job_id = job.id and said.token = job.claim_token and job.lease_expires_at is not null
      and (job.attempt > %(attempt)s or job.attempt = %(attempt)s and said.last > %(line)s)
) part on true
where job.id = %(id)s
order by part.attempt, part.first

-- webhooks_of: the URLs that get the outcomes of these jobs, and how the last delivery went
select job.id, coalesce(message.url, job.webhook, of_kind.webhook, of_all.webhook),
       case message.state when 'delivered' then message.ended_at end, coalesce(message.tries, 0)
from {schema}.job_rows job
left join lateral (
    select url, state, ended_at, tries from {schema}.webhooks
    where job_id = job.id and type in ('job.succeeded', 'job.failed', 'job.canceled')
    order by id desc limit 1) message on true
left join {schema}.kind_rules of_kind on of_kind.kind = job.kind
left join {schema}.kind_rules of_all on of_all.kind = ''
where job.id = any (%(ids)s::bigint[])
  and coalesce(message.url, job.webhook, of_kind.webhook, of_all.webhook) is not null

-- overview: jobs for a screen: of each sort the first `bound` that fit, among the first `span` of its index
with scanned as materialized (
    (select 'leased' as sort, row_number() over () as place, id, kind, target from (
        select id, kind, nullif(target, '') as target from {schema}.first_in_hand(0, %(span)s)
        where %(leased)s order by id) one)
    union all
    (select 'line', row_number() over (), id, kind, target from (
        select job.id, kind, target from {schema}.ready cross join lateral generate_series(first_id, last_id) as job (id)
        where %(queued)s
        order by priority desc, run_at, first_id, job.id limit %(span)s) one)
    union all
    (select room, row_number() over (partition by room), id, kind, target
     from unnest(array['parked', 'behind']) as of (its_room) cross join lateral (
         select room, job.id, kind, target from {schema}.waiting cross join lateral generate_series(first_id, last_id) as job (id)
         where %(queued)s and room = its_room
         order by name, priority desc, run_at, first_id, job.id limit %(span)s) one)
    union all
    (select wanted.state, row_number() over (partition by wanted.state order by one.id desc), one.id, one.kind, one.target
     from unnest(%(resting)s::text[]) as wanted (state) cross join lateral (
         select id, kind, target from {schema}.job_rows job
         where job.rest >= wanted.state and job.rest <= wanted.state -- not "=": else a walk over all ids looks cheap
         order by job.rest desc, id desc limit %(span)s) one)
    union all
    (select 'succeeded', row_number() over (order by id desc), id, kind, target from (
        select id, kind, target, state from {schema}.job_rows where %(succeeded)s order by id desc limit %(span)s) one
     where state = 'succeeded')
),
ranked as (
    select id, sort, place, row_number() over (partition by sort order by place) as number from scanned
    where (%(kind)s::text is null or kind = %(kind)s) and (%(target)s::text is null or target = %(target)s)
),
found as (
    select job.*, ranked.sort, ranked.place
    from ranked cross join lateral (
        select id, kind, state, target, priority, attempt, max_attempts, forgiven, created_at, run_at, started_at, finished_at,
               node, worker, request, progress, left(progress_note, %(note)s) as note, left(error::text, %(text)s) as error,
               left(reason, %(note)s) as reason, parked, behind
        from {schema}.live_jobs where id = ranked.id limit 1) job
    where ranked.number <= %(bound)s
)
select moment.now, found.* from (select clock_timestamp() as now) moment left join found on true
order by found.sort, found.place

-- await_end: marks a job whose end somebody waits for; what ends it meanwhile has ended it when this returns
update {schema}.job_rows set awaited = true
where id = %(id)s and awaited is not true and state not in ('succeeded', 'failed', 'canceled')
