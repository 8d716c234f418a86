-- Messages to receivers.

-- take_webhooks: takes due messages, the longest due first, under a token and for a time; skips locked ones
-- A message that is taken becomes due again when its time is over, so takers walk over due messages only.
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

-- settle_webhooks: writes the results of deliveries, each fenced by its token, and drafts events for those that ended; returns
-- their ids
-- When a receiver is gone, its other waiting messages fail too, except those that another node is delivering.
with now as materialized (select clock_timestamp() as at),
tried as materialized (
    select * from unnest(
        %(ids)s::bigint[], %(tokens)s::uuid[], %(delivered)s::bool[], %(statuses)s::int[], %(errors)s::text[],
        %(retries)s::float8[], %(gone)s::bool[])
    as tried (id, token, delivered, status, error, retry_seconds, gone)
),
settled as (
    update {schema}.webhooks message
    set state = case when tried.delivered then 'delivered' when tried.retry_seconds is null then 'failed' else 'waiting' end,
        due_at = case when tried.delivered or tried.retry_seconds is null then message.due_at
                      else now.at + make_interval(secs => tried.retry_seconds) end,
        ended_at = case when tried.delivered or tried.retry_seconds is null then now.at end,
        status = tried.status, error = tried.error, claim_token = null, claimed_until = null
    from tried, now
    where message.id = tried.id and message.claim_token = tried.token and message.state = 'waiting'
    returning message.id, message.job_id, message.url, message.state, message.tries, message.status, message.error, tried.gone
),
closed as (
    insert into {schema}.webhooks_gone as known (url, at)
    select distinct settled.url, now.at from settled, now where settled.gone order by settled.url
    on conflict (url) do update set at = excluded.at
),
orphaned as materialized (
    select id from {schema}.webhooks
    where url in (select url from settled where gone) and state = 'waiting' and claim_token is null
    limit 10000
    for no key update skip locked
),
spared as (
    update {schema}.webhooks message
    set state = 'failed', ended_at = now.at, status = null,
        error = 'the receiver answered 410 earlier: nothing is sent there until somebody sends again'
    from orphaned, now where message.id = orphaned.id
    returning message.id, message.job_id, message.url, message.state, message.tries, message.status, message.error
),
ended as (
    select id, job_id, url, state, tries, status, error from settled where state <> 'waiting'
  union all
    select id, job_id, url, state, tries, status, error from spared
),
drafted as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, details)
    select 'job.webhook_' || ended.state, count(*), array_agg(ended.job_id order by ended.id),
           array_agg(job.kind order by ended.id), array_agg(job.target order by ended.id),
           array_agg(jsonb_build_object('url', ended.url, 'attempts', ended.tries)
                     || case ended.state when 'delivered' then jsonb_build_object('status', ended.status)
                                         else jsonb_build_object('error', ended.error) end order by ended.id)
    from (select *, row_number() over (partition by state order by id) - 1 as place from ended) ended
    left join {schema}.job_rows job on job.id = ended.job_id
    group by ended.state, place / 1000 order by ended.state, place / 1000
)
select id from settled

-- next_webhook: seconds until the next message is due that nobody has taken; below 0 = overdue; null = there is none
select extract(epoch from min(due_at) - clock_timestamp())::float8 from {schema}.webhooks where state = 'waiting'

-- webhooks: messages newest first, filtered, at most `bound`
select id, 'msg_' || replace(message_id::text, '-', ''), job_id, url, type, state, tries, created_at, due_at, ended_at, status,
    error
from {schema}.webhooks
where id < coalesce(%(before_id)s::bigint, 9223372036854775807)
  and (%(job_id)s::bigint is null or job_id = %(job_id)s)
  and (%(state)s::text is null or state = %(state)s)
  and (%(url)s::text is null or url = %(url)s)
order by id desc limit %(bound)s

-- resend_webhooks: makes these messages due now, with a fresh start; returns those that are waiting now
-- A message that is being delivered is left alone; one that waits for its next try is due at once.
with now as materialized (select clock_timestamp() as at),
named as materialized (
    select id, url, claim_token is not null and claimed_until > (select at from now) as held
    from {schema}.webhooks where id = any (%(ids)s::bigint[]) order by id
    for no key update
),
opened as (
    delete from {schema}.webhooks_gone gone using named where gone.url = named.url
),
sent as (
    update {schema}.webhooks message
    set state = 'waiting', tries = 0, created_at = now.at, due_at = now.at, ended_at = null, status = null, error = null,
        claim_token = null, claimed_until = null
    from named, now where message.id = named.id and not named.held
)
select id from named
