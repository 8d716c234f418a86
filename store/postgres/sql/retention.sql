-- Jobs that ended go stale, and are deleted. Both walk along the endings, in the order of endings_order. What an ending names
-- is only where to look: the job itself says whether it is still the one that ended so.

-- gather_endings: puts small endings of the last hour that are so close in time together, up to 500 jobs in one; else jobs that end
-- one by one had a row and its index entries each, for as long as they are kept
-- Their jobs count as ended when the last of them did. Skips endings that are locked. Returns how many it put together.
with recursive {ending_groups},
small as materialized (
    select id, state, kind, moment, (sum(number) over (partition by state, kind, moment order by at,
        id) - 1)::bigint / 500 as portion
    from (
        select found.*, floor(extract(epoch from found.at) / %(close_seconds)s::float8) as moment
        from groups cross join lateral (
            select ending.id, ending.state, ending.kind, ending.at,
                   (select sum(upper(part) - lower(part))::bigint from unnest(ending.jobs) part) as number
            from {schema}.endings ending
            where ending.stale = %(stale)s and ending.state = groups.state and ending.kind = groups.kind
              and ending.at > clock_timestamp() - interval '1 hour'
            order by ending.at, ending.id limit 5000) found
        where found.number <= 250) near
),
taken as materialized (
    select ending.id, ending.at, ending.jobs, small.state, small.kind, small.moment, small.portion
    from small join {schema}.endings ending on ending.id = small.id for update of ending skip locked
),
together as materialized (
    select *, count(*) over (partition by state, kind, moment, portion) as number from taken
),
gathered as (
    insert into {schema}.endings (state, kind, stale, at, jobs)
    select state, kind, %(stale)s, max(at), range_agg(stretch.ids) from together cross join lateral unnest(jobs) as stretch (ids)
    where number > 1 group by state, kind, moment, portion
),
gone as (
    delete from {schema}.endings ending using together where ending.id = together.id and together.number > 1 returning 1
)
select count(*) from gone

-- mark_stale: marks the next jobs that are old enough, at most `batch`, and drafts events; skips endings and jobs that are locked
-- Marked jobs go on in stale endings. A job that is passed by (locked, or with an undelivered message) stays in its ending,
-- and is not met again in this walk. Returns how many were marked, and where the next batch begins, unless that was all.
with recursive {walked_endings},
marked as (
    update {schema}.job_rows job set stale_at = now.at from now
    where job.id = any (array(select picked_id from looked where picked_id is not null))
    returning job.id, job.state, job.kind, job.target, job.attempt
),
gone_on as (
    insert into {schema}.endings (state, kind, stale, at, jobs)
    select state, kind, true, at, range_agg(int8range(id, id, '[]')) from looked where picked_id is not null
    group by ending_id, state, kind, at
),
drafted as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, common)
    select 'job.stale', count(*), array_agg(id order by id), array_agg(kind order by id),
           case when count(target) > 0 then array_agg(target order by id) end, jsonb_build_object('state', state)
    from marked group by state
),
hooked as (
    insert into {schema}.webhooks (job_id, url, type, attempt)
    select id, %(hook)s::text, 'job.stale', attempt from marked where %(hook)s::text is not null
)
select (select count(*) from marked), last.state, last.kind, last.at, last.id
from {further}

-- pick_expired: locks the next stale jobs to delete, at most `batch`, and their endings; skips what is locked
-- Returns the ids, those of their endings, and where the next batch begins, unless that was all.
with recursive {walked_endings}
select array(select picked_id from looked where picked_id is not null order by picked_id),
       array(select distinct ending_id from looked where picked_id is not null), last.state, last.kind, last.at, last.id
from {further}

-- part walked_endings: the next jobs whose time has come (`looked`), those to be dealt with locked (`picked_id`); what their
-- endings named in vain is dropped, and the ending at which the batch is full is cut in two
-- Goes from kind to kind by one probe each, and in each kind only as far as its age reaches.
now as materialized (select clock_timestamp() as at),
ages as materialized (  -- a kind without an age of its own has the one without a kind
    select state, kind, seconds from unnest(%(states)s::text[], %(kinds)s::text[], %(ages)s::float8[]) as age (state, kind, seconds)
),
{ending_groups},
scanned as materialized (
    select due.* from groups
    cross join lateral (
        select ages.seconds,
               (groups.state, groups.kind) = (%(after_state)s::text, %(after_kind)s::text) as begun
        from ages where ages.state = groups.state and coalesce(ages.kind, groups.kind) = groups.kind
        order by ages.kind nulls last limit 1) age
    cross join lateral (
        select ending.id, ending.state, ending.kind, ending.at,
               (select sum(upper(part) - lower(part)) from unnest(ending.jobs) part) as number
        from {schema}.endings ending
        where ending.stale = %(stale)s and ending.state = groups.state and ending.kind = groups.kind
          and ending.at <= (select at from now) - make_interval(secs => age.seconds)
          and (ending.at, ending.id) > (
              case when age.begun then %(after_at)s::timestamptz else '-infinity' end,
              case when age.begun then %(after_id)s::bigint else 0 end)
        order by ending.at, ending.id limit %(batch)s) due
    limit %(batch)s
),
met as materialized (
    select * from (select *, coalesce(sum(number) over (order by state, kind, at, id
                       rows between unbounded preceding and 1 preceding), 0) as before from scanned) counted
    where before < %(batch)s
),
taken as materialized (
    select ending.id, ending.state, ending.kind, ending.at, ending.jobs, met.before
    from met join {schema}.endings ending on ending.id = met.id where ending.stale = %(stale)s
    for update of ending skip locked
),
members as materialized (
    select taken.id as ending_id, taken.state, taken.kind, taken.at, job.id,
           taken.before + row_number() over (partition by taken.id order by job.id) as nth
    from taken cross join lateral unnest(taken.jobs) as stretch (ids)
    cross join lateral generate_series(lower(stretch.ids), upper(stretch.ids) - 1) as job (id)
),
looked as materialized (
    select member.ending_id, member.state, member.kind, member.at, member.id, picked.id as picked_id, passed_by.id as passed_by_id
    from (select * from members where nth <= %(batch)s order by id) member
    left join lateral (
        select job.id from {schema}.job_rows job
        where job.id = member.id and {ended_so}
          and not exists (select from {schema}.webhooks waits where waits.job_id = job.id and waits.state = 'waiting')
        for update skip locked) picked on true
    left join lateral (
        select job.id from {schema}.job_rows job where picked.id is null and job.id = member.id and {ended_so}) passed_by on true
),
left_over as materialized (
    select taken.id, taken.jobs as before,
           range_agg(int8range(looked.id, looked.id, '[]')) filter (
               where looked.passed_by_id is not null or looked.picked_id is not null and %(stale)s) as jobs
    from taken left join looked on looked.ending_id = taken.id group by taken.id, taken.jobs
),
emptied as (
    delete from {schema}.endings ending using left_over where ending.id = left_over.id and left_over.jobs is null
),
shrunk as (
    update {schema}.endings ending set jobs = left_over.jobs from left_over
    where ending.id = left_over.id and left_over.jobs <> left_over.before
),
cut as (
    insert into {schema}.endings (state, kind, stale, at, jobs)
    select state, kind, %(stale)s, at, range_agg(int8range(id, id, '[]')) from members where nth > %(batch)s
    group by ending_id, state, kind, at
)

-- part ending_groups: the states and kinds that have endings, from one to the next
groups (state, kind) as (
    (select ending.state, ending.kind from {schema}.endings ending
     where ending.stale = %(stale)s and (ending.state, ending.kind) >= (%(after_state)s::text, %(after_kind)s::text)
     order by ending.state, ending.kind limit 1)
    union all
    select further.state, further.kind from groups cross join lateral (
        select ending.state, ending.kind from {schema}.endings ending
        where ending.stale = %(stale)s and (ending.state, ending.kind) > (groups.state, groups.kind)
        order by ending.state, ending.kind limit 1) further
)

-- part ended_so: whether the job is as its ending says
job.state = member.state and job.kind = member.kind and job.finished_at <= member.at and (job.stale_at is not null) = %(stale)s
          and (job.state <> 'failed' or job.target is null or job.cleared_at is not null)

-- part further: the last ending that was met, if the batch is full
(select coalesce(sum(number), 0) >= %(batch)s as is_full from met) looks left join lateral (
    select * from met order by state desc, kind desc, at desc, id desc limit 1) last on looks.is_full

-- lock_one: locks a job that somebody wants deleted
select from {schema}.job_rows where id = %(id)s::bigint for update

-- pick_one: how it stands, once it is locked: its state, its target, whether it halts that, and whether a message about it waits
-- A statement of its own: one that had waited for the lock would see the row as it is now, and all else as it was before.
select (select live.state from {schema}.live_jobs live where live.id = job.id), job.target,
       job.state = 'failed' and job.target is not null and job.cleared_at is null,
       exists (select from {schema}.webhooks waits where waits.job_id = job.id and waits.state = 'waiting')
from {schema}.job_rows job where job.id = %(id)s::bigint

-- delete_expired: deletes these jobs, which are locked, and what belongs to them alone; drafts events; returns how many
-- A job stays if one of its messages is being resent at this moment: then it is no longer picked.
with messages as materialized (
    select id, job_id from {schema}.webhooks
    where job_id = any (%(ids)s::bigint[]) and state <> 'waiting' for update skip locked
),
keys as materialized (
    select held.key from {schema}.job_rows job join {schema}.dedup_keys held on held.key = job.dedup_key and held.job_id = job.id
    where job.id = any (%(ids)s::bigint[]) and coalesce(held.until, '-infinity') <= clock_timestamp()
    for update of held skip locked
),
gone as (
    delete from {schema}.job_rows job
    where job.id = any (%(ids)s::bigint[]) and not exists (
        select from {schema}.webhooks message
        where message.job_id = job.id and not exists (select from messages where messages.id = message.id))
    returning job.id, job.state, job.kind, job.target, job.attempt
),
without_attempts as (delete from {schema}.attempts past using gone where past.job_id = gone.id),
without_phases as (delete from {schema}.job_phases phase using gone where phase.job_id = gone.id),
without_messages as (
    delete from {schema}.webhooks message using messages, gone where message.id = messages.id and messages.job_id = gone.id
),
without_keys as (
    delete from {schema}.dedup_keys held using keys, gone where held.key = keys.key and held.job_id = gone.id
),
unnamed as materialized (
    select ending.id, ending.jobs as before, ending.jobs - (select range_agg(int8range(id, id, '[]')) from gone) as jobs
    from {schema}.endings ending where ending.id = any (%(endings)s::bigint[])
),
emptied as (
    delete from {schema}.endings ending using unnamed where ending.id = unnamed.id and isempty(unnamed.jobs)
),
shrunk as (
    update {schema}.endings ending set jobs = unnamed.jobs from unnamed
    where ending.id = unnamed.id and not isempty(unnamed.jobs) and unnamed.jobs <> unnamed.before
),
counted as (
    insert into {schema}.count_changes (succeeded, failed, canceled)
    select -count(*) filter (where state = 'succeeded'), -count(*) filter (where state = 'failed'),
           -count(*) filter (where state = 'canceled')
    from gone having count(*) > 0
),
drafted as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, common)
    select 'job.deleted', count(*), array_agg(id order by id), array_agg(kind order by id),
           case when count(target) > 0 then array_agg(target order by id) end,
           jsonb_strip_nulls(jsonb_build_object('state', state, 'by', %(by)s::text))
    from gone group by state
),
objects as materialized (
    select id, archived, sent from unnest(%(object_ids)s::bigint[], %(archived)s::text[], %(sent)s::text[])
        as object (id, archived, sent)
),
archived as (
    insert into {schema}.job_archive (id, job)
    select gone.id, objects.archived::jsonb from gone join objects on objects.id = gone.id where objects.archived is not null
),
hooked as (
    insert into {schema}.webhooks (job_id, url, type, attempt, body)
    select gone.id, %(hook)s::text, 'job.deleted', gone.attempt, objects.sent::jsonb
    from gone left join objects on objects.id = gone.id where %(hook)s::text is not null
)
select count(*) from gone

-- forget_leftovers: deletes what outlived its job: keys that have run out, and messages of deleted jobs that were sent long ago
with keys as (
    delete from {schema}.dedup_keys where key in (
        select key from {schema}.dedup_keys where until < 'infinity' and until <= clock_timestamp()
        order by until limit %(batch)s for update skip locked)
    returning 1
),
messages as (
    delete from {schema}.webhooks where id in (
        select id from {schema}.webhooks
        where type = 'job.deleted' and state <> 'waiting' and ended_at <= clock_timestamp() - make_interval(secs => %(age)s)
        order by ended_at limit %(batch)s for update skip locked)
    returning 1
)
select (select count(*) from keys) + (select count(*) from messages)
