-- Webhooks, and what retention keeps of jobs that are gone.

-- Messages to others, made in the transaction that makes them true. A row is taken under a token and
-- for a time, as jobs are. `url` may also be python:module:function.
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

-- What outlives its job, by the time from which nobody needs it.
create index webhooks_of_the_deleted on webhooks (ended_at)
  where type = 'job.deleted' and state <> 'waiting';

-- Receivers that answered 410: nothing is sent there until somebody sends again.
create table webhooks_gone (
  url text primary key,
  at integer not null
) without rowid;

-- Jobs that have ended and are not yet stale, kind by kind in the order of their ends: a pass walks
-- along them. A job that halts its target is not among them, until somebody clears it.
create index job_rows_ended on job_rows (state, kind, finished_at, id)
  where (state = 'succeeded' or state = 'failed' or state = 'canceled') and stale_at is null
    and (state <> 'failed' or target is null or cleared_at is not null);

-- The stale ones: the next pass walks along these.
create index job_rows_stale on job_rows (state, kind, finished_at, id) where stale_at is not null;

-- Jobs that were deleted, as every interface showed them, if `[retention] archive` asks for it.
-- musterd never reads it.
create table job_archive (
  id integer primary key,
  job text not null,
  archived_at integer not null
);
