-- Webhooks: the messages that go out, made in the transaction that makes them true.

-- A message is taken under a token and for a time, as jobs are. `url` may also be python:module:function.
create table {schema}.webhooks (
    id            bigint generated always as identity primary key,
    message_id    uuid not null default gen_random_uuid(),
    job_id        bigint not null,
    url           text not null,
    type          text not null,
    attempt       integer,
    state         text not null default 'waiting',
    tries         integer not null default 0,
    created_at    timestamptz not null default clock_timestamp(),
    due_at        timestamptz not null default clock_timestamp(),
    claim_token   uuid,
    claimed_until timestamptz,
    ended_at      timestamptz,
    status        integer,
    error         text,
    body          jsonb,    -- null = the job as it is at the time of the delivery
    constraint webhook_state_is_known check (state in ('waiting', 'delivered', 'failed'))
);
create index webhooks_due on {schema}.webhooks (due_at, id) where state = 'waiting';
create index webhooks_of_job on {schema}.webhooks (job_id);
-- Messages that outlive their jobs, by the time from which nobody needs them.
create index webhooks_of_the_deleted on {schema}.webhooks (ended_at) where type = 'job.deleted' and state <> 'waiting';

-- Receivers that answered 410: nothing is sent there until somebody resends.
create table {schema}.webhooks_gone (
    url text primary key,
    at  timestamptz not null default clock_timestamp()
);

-- A receiver that answered 410 gets nothing more.
create function {schema}.fail_if_receiver_is_gone() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if new.state = 'waiting' and exists (select from {schema}.webhooks_gone gone where gone.url = new.url) then
        new.state := 'failed';
        new.ended_at := clock_timestamp();
        new.error := 'the receiver answered 410 earlier: nothing is sent there until somebody sends again';
        insert into {schema}.event_drafts (type, job_ids, kinds, targets, common)
        select 'job.webhook_failed', array[job.id], array[job.kind], case when job.target is not null then array[job.target] end,
               jsonb_build_object('url', new.url, 'attempts', 0, 'error', new.error)
        from {schema}.job_rows job where job.id = new.job_id;
    end if;
    return new;
end $$;

create trigger webhooks_fail_if_receiver_is_gone before insert on {schema}.webhooks for each row
    execute function {schema}.fail_if_receiver_is_gone();

-- Makes the message of a job's end, if the job, its kind or the catch-all names a URL.
create function {schema}.make_end_message(job bigint, kind text, event text, attempt integer, own text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into {schema}.webhooks (job_id, url, type, attempt)
    select make_end_message.job, wanted.url, make_end_message.event, make_end_message.attempt
    from (select coalesce(make_end_message.own,
                     (select rule.webhook from {schema}.kind_rules rule where rule.kind = make_end_message.kind),
                     (select rule.webhook from {schema}.kind_rules rule where rule.kind = '')) as url) wanted
    where wanted.url is not null;
end $$;

-- A success with a URL of its own. Its statement asks nothing back of the rows, because that costs every success, and this
-- trigger only those that have a URL.
create function {schema}.message_own_success() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    perform {schema}.make_end_message(new.id, new.kind, 'job.succeeded', new.attempt, new.webhook);
    return null;
end $$;

create trigger job_rows_message_own_success after update of state on {schema}.job_rows for each row
    when (new.webhook is not null and new.state = 'succeeded' and old.state <> 'succeeded')
    execute function {schema}.message_own_success();
