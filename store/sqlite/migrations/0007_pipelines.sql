-- Pipelines and events: phases of jobs, the log of events, webhooks, what nodes say of kinds, when a job went stale.

alter table job_rows add column webhook text
  constraint webhook_is_short check (
    webhook is null
    or (typeof(webhook) = 'text' and length(webhook) between 1 and 2000 and instr(webhook, char(0)) = 0)
  );

alter table job_rows add column stale_at integer;

-- What the nodes say of the kinds in their catalogs, for those who have none at hand: the names of their phases, in
-- order (a JSON list), and where their jobs' ends are told. The kind '' stands for all kinds without a webhook.
create table kind_rules (
  kind text primary key,
  phases text not null default '[]',
  webhook text
) without rowid;

-- The phases of jobs that have started, in order. What a phase that is not finished is called (pending, canceled)
-- follows from the state of its job: store/phases.py tells how.
create table job_phases (
  job_id integer not null,
  place integer not null,
  name text not null,
  state text not null default 'pending' check (state in ('pending', 'running', 'succeeded', 'failed')),
  progress real check (progress is null or progress between 0 and 100),
  result text,
  attempts integer not null default 0,
  started_at integer,
  finished_at integer,
  primary key (job_id, name)
) without rowid;

-- The log, written in the transaction that makes its events true: there is one writer at a time, so their order is that
-- of the commits. A row has the events of one type and one transaction, with the positions last - size + 1 to last.
-- `jobs`: a JSON list of [job id, kind, target, attempt, own data], one for each event; null = one event of no job.
create table event_log (
  last integer primary key,
  at integer not null,
  type text not null,
  size integer not null,
  jobs text,
  common text -- JSON: of the data, what all have in common
);

create table event_head (last integer not null);
insert into event_head values (0);

-- What is to be told to others, made in the transaction that makes it true. A row is taken under a token and for a time,
-- as jobs are. `url` may also be python:module:function.
create table webhooks (
  id integer primary key autoincrement,
  message_id text not null default (lower(hex(randomblob(16)))),
  job_id integer not null,
  url text not null,
  type text not null,
  attempt integer,
  state text not null default 'waiting' check (state in ('waiting', 'delivered', 'failed')),
  tries integer not null default 0,
  created_at integer not null,
  due_at integer not null,
  claim_token blob,
  claimed_until integer,
  ended_at integer,
  status integer,
  error text,
  body text -- JSON; null = the job as it is found at the delivery
);

create index webhooks_due on webhooks (due_at, id) where state = 'waiting';
create index webhooks_of_job on webhooks (job_id);

-- Receivers that answered 410: nothing is sent there until somebody sends again.
create table webhooks_gone (
  url text primary key,
  at integer not null
) without rowid;
