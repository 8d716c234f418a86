-- take_webhooks: takes messages that are due, the longest due first, under a token and for so long; skips locked ones
-- A message that is held is due again when its time is over: so whoever takes walks only over what is due.
with now as materialized (select clock_timestamp() as at),
due as materialized (
    select id from {schema}.webhooks
    where state = 'waiting' and due_at <= (select at from now)
    order by due_at, id limit %(batch)s
    for no key update skip locked
),
taken as (
    update {schema}.webhooks message
    set claim_token = %(token)s, tries = message.tries + 1,
        due_at = now.at + make_interval(secs => %(seconds)s), claimed_until = now.at + make_interval(secs => %(seconds)s)
    from due, now where message.id = due.id
    returning message.id, 'msg_' || replace(message.message_id::text, '-', '') as message_id, message.job_id, message.url,
              message.type, message.attempt, message.tries, message.created_at,
              extract(epoch from now.at - message.created_at)::float8 as age_seconds, message.body::text as body,
              message.claim_token
)
select * from taken order by id
