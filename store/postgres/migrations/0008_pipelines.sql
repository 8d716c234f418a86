-- pipelines and events: phases of jobs, the log of events, webhooks, what nodes say of kinds, when a job went stale

alter table {schema}.job_rows
    add column webhook  text,
    add column stale_at timestamptz,
    add constraint webhook_is_short check (char_length(webhook) between 1 and 2000);

-- What the nodes say of the kinds in their catalogs, for those who have none at hand: the names of their phases, in
-- order, and where their jobs' ends are told. The kind '' stands for all kinds that say nothing of a webhook.
create table {schema}.kind_rules (
    kind    text primary key,
    phases  text[] not null default '{}',
    webhook text
);

-- The phases of jobs that have started, in order. What a phase that is not finished is called (pending, canceled)
-- follows from the state of its job: store/phases.py tells how.
create table {schema}.job_phases (
    job_id      bigint not null,
    place       smallint not null,
    name        text not null,
    state       text not null default 'pending',
    progress    real,
    result      jsonb,
    attempts    integer not null default 0,
    started_at  timestamptz,
    finished_at timestamptz,
    primary key (job_id, name),
    constraint phase_state_is_known check (state in ('pending', 'running', 'succeeded', 'failed')),
    constraint phase_progress_is_in_percent check (progress between 0 and 100)
);

-- Events are drafted in the transaction that makes them true, in no order. One row has the events of one type and one
-- statement: an array holds one value for each of them, or, where it has one only, that of all; null = none has any.
create table {schema}.event_drafts (
    id       bigint generated always as identity primary key,
    at       timestamptz not null default clock_timestamp(),
    type     text not null,
    size     integer not null default 1,
    job_ids  bigint[],
    kinds    text[],
    targets  text[],
    attempts integer[],
    common   jsonb,     -- of the data, what all have in common
    details  jsonb[]    -- of the data, what each has to itself
);
alter table {schema}.event_drafts set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);

-- The log: drafts in the order in which readers meet them, which is never changed behind a reader. A row has the
-- positions last - size + 1 to last. Whoever orders drafts holds the row of event_head.
create table {schema}.event_log (
    last     bigint primary key,
    at       timestamptz not null,
    type     text not null,
    size     integer not null,
    job_ids  bigint[],
    kinds    text[],
    targets  text[],
    attempts integer[],
    common   jsonb,
    details  jsonb[]
);

create table {schema}.event_head (
    only_row boolean primary key default true check (only_row),
    last     bigint not null default 0
);
insert into {schema}.event_head default values;

-- What is to be told to others, made in the transaction that makes it true. A row is taken under a token and for a time,
-- as jobs are. `url` may also be python:module:function.
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
    body          jsonb,    -- null = the job as it is found at the delivery
    constraint webhook_state_is_known check (state in ('waiting', 'delivered', 'failed'))
);
create index webhooks_due on {schema}.webhooks (due_at, id) where state = 'waiting';
create index webhooks_of_job on {schema}.webhooks (job_id);

-- Receivers that answered 410: nothing is sent there until somebody sends again.
create table {schema}.webhooks_gone (
    url text primary key,
    at  timestamptz not null default clock_timestamp()
);
