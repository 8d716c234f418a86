-- forget_leftovers: deletes what outlived its job: keys that have run out, messages of deleted jobs that have long been sent
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
