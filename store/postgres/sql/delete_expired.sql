-- delete_expired: deletes these jobs, which are locked, and what belongs to them alone; tells so; returns how many
-- A job of which somebody sends a message again at this moment stays: it is then no longer picked.
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
noted as (
    insert into {schema}.count_changes (succeeded, failed, canceled)
    select -count(*) filter (where state = 'succeeded'), -count(*) filter (where state = 'failed'),
           -count(*) filter (where state = 'canceled')
    from gone having count(*) > 0
),
told as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, common)
    select 'job.deleted', count(*), array_agg(id order by id), array_agg(kind order by id),
           case when count(target) > 0 then array_agg(target order by id) end, jsonb_build_object('state', state)
    from gone group by state
),
objects as materialized (
    select id, archived, told from unnest(%(object_ids)s::bigint[], %(archived)s::text[], %(told)s::text[])
        as object (id, archived, told)
),
archived as (
    insert into {schema}.job_archive (id, job)
    select gone.id, objects.archived::jsonb from gone join objects on objects.id = gone.id where objects.archived is not null
),
hooked as (
    insert into {schema}.webhooks (job_id, url, type, attempt, body)
    select gone.id, %(hook)s::text, 'job.deleted', gone.attempt, objects.told::jsonb
    from gone left join objects on objects.id = gone.id where %(hook)s::text is not null
)
select count(*) from gone
