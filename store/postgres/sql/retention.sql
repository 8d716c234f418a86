-- Jobs that ended go stale, and are deleted.

-- mark_stale: marks the next jobs that are old enough, at most `batch`, and drafts events; skips rows that are locked
-- Walks along job_rows_ended: one probe from kind to kind, and in each kind only as far as its age reaches. Skips jobs with
-- an undelivered message. Returns how many were marked, and where the next batch begins, unless that was all.
with recursive now as materialized (select clock_timestamp() as at),
ages as materialized (  -- a kind without an age of its own has the one without a kind
    select state, kind, seconds from unnest(%(states)s::text[], %(kinds)s::text[], %(ages)s::float8[]) as age (state, kind, seconds)
),
groups (state, kind) as (
    (select job.state, job.kind from {schema}.job_rows job
     where job.state in ('succeeded', 'failed', 'canceled') and job.stale_at is null
       and (job.state <> 'failed' or job.target is null or job.cleared_at is not null)
       and (job.state, job.kind) >= (%(after_state)s::text, %(after_kind)s::text)
     order by job.state, job.kind limit 1)
    union all
    select further.state, further.kind from groups cross join lateral (
        select job.state, job.kind from {schema}.job_rows job
        where job.state in ('succeeded', 'failed', 'canceled') and job.stale_at is null
          and (job.state <> 'failed' or job.target is null or job.cleared_at is not null)
          and (job.state, job.kind) > (groups.state, groups.kind)
        order by job.state, job.kind limit 1) further
),
scanned as materialized (
    select groups.state, groups.kind, due.finished_at, due.id
    from groups
    cross join lateral (
        select ages.seconds,
               (groups.state, groups.kind) = (%(after_state)s::text, %(after_kind)s::text) as begun
        from ages where ages.state = groups.state and coalesce(ages.kind, groups.kind) = groups.kind
        order by ages.kind nulls last limit 1) age
    cross join lateral (
        select job.finished_at, job.id from {schema}.job_rows job
        where job.state in ('succeeded', 'failed', 'canceled') and job.stale_at is null
          and (job.state <> 'failed' or job.target is null or job.cleared_at is not null)
          and job.state = groups.state and job.kind = groups.kind
          and job.finished_at <= (select at from now) - make_interval(secs => age.seconds)
          and (job.finished_at, job.id) > (
              case when age.begun then %(after_at)s::timestamptz else '-infinity' end,
              case when age.begun then %(after_id)s::bigint else 0 end)
        order by job.finished_at, job.id limit %(batch)s) due
    limit %(batch)s
),
picked as materialized (
    select job.id from scanned join {schema}.job_rows job on job.id = scanned.id and job.finished_at = scanned.finished_at
    where job.state in ('succeeded', 'failed', 'canceled') and job.stale_at is null
      and (job.state <> 'failed' or job.target is null or job.cleared_at is not null)
      and not exists (select from {schema}.webhooks waits where waits.job_id = job.id and waits.state = 'waiting')
    order by job.id for no key update of job skip locked
),
marked as (
    update {schema}.job_rows job set stale_at = now.at from picked, now where job.id = picked.id
    returning job.id, job.state, job.kind, job.target, job.attempt
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
select (select count(*) from marked), last.state, last.kind, last.finished_at, last.id
from (select count(*) as number from scanned) looks left join lateral (
    select * from scanned order by state desc, kind desc, finished_at desc, id desc limit 1) last on looks.number = %(batch)s

-- pick_expired: locks the next stale jobs to delete, at most `batch`; skips rows that are locked
-- Walks along job_rows_stale as mark_stale does along its index. Returns the ids, and where the next batch begins, unless that was all.
with recursive now as materialized (select clock_timestamp() as at),
ages as materialized (
    select state, kind, seconds from unnest(%(states)s::text[], %(kinds)s::text[], %(ages)s::float8[]) as age (state, kind, seconds)
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
scanned as materialized (
    select groups.state, groups.kind, due.finished_at, due.id
    from groups
    cross join lateral (
        select ages.seconds,
               (groups.state, groups.kind) = (%(after_state)s::text, %(after_kind)s::text) as begun
        from ages where ages.state = groups.state and coalesce(ages.kind, groups.kind) = groups.kind
        order by ages.kind nulls last limit 1) age
    cross join lateral (
        select job.finished_at, job.id from {schema}.job_rows job
        where job.stale_at is not null and job.state = groups.state and job.kind = groups.kind
          and job.finished_at <= (select at from now) - make_interval(secs => age.seconds)
          and (job.finished_at, job.id) > (
              case when age.begun then %(after_at)s::timestamptz else '-infinity' end,
              case when age.begun then %(after_id)s::bigint else 0 end)
        order by job.finished_at, job.id limit %(batch)s) due
    limit %(batch)s
),
picked as materialized (
    select job.id from scanned join {schema}.job_rows job on job.id = scanned.id and job.finished_at = scanned.finished_at
    where job.state in ('succeeded', 'failed', 'canceled') and job.stale_at is not null
      and (job.state <> 'failed' or job.target is null or job.cleared_at is not null)
      and not exists (select from {schema}.webhooks waits where waits.job_id = job.id and waits.state = 'waiting')
    order by job.id for update of job skip locked
)
select array(select id from picked), last.state, last.kind, last.finished_at, last.id
from (select count(*) as number from scanned) looks left join lateral (
    select * from scanned order by state desc, kind desc, finished_at desc, id desc limit 1) last on looks.number = %(batch)s

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
counted as (
    insert into {schema}.count_changes (succeeded, failed, canceled)
    select -count(*) filter (where state = 'succeeded'), -count(*) filter (where state = 'failed'),
           -count(*) filter (where state = 'canceled')
    from gone having count(*) > 0
),
drafted as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, common)
    select 'job.deleted', count(*), array_agg(id order by id), array_agg(kind order by id),
           case when count(target) > 0 then array_agg(target order by id) end, jsonb_build_object('state', state)
    from gone group by state
),
objects as materialized (
    select id, archived, sent from unnest(%(object_ids)s::bigint[], %(archived)s::text[], %(told)s::text[])
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
