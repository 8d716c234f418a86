-- resend_webhooks: makes these messages due now, with a fresh start; returns those that are waiting now
-- One that somebody is sending just now is left to him, one that waits for its next try comes now.
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
