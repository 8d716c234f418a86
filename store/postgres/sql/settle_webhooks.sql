-- settle_webhooks: writes what came of tries, each fenced by its token, and tells of those that ended; returns their ids
-- What else waits for a receiver that is gone fails with it, but for what others hold: they will hear it themselves.
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
told as (
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
