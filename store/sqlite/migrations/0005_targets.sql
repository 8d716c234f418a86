-- Targets: jobs of one target run one at a time, in order.

alter table job_rows add column target text
  constraint target_is_short check (
    target is null or (typeof(target) = 'text' and length(target) between 1 and 200 and instr(target, char(0)) = 0)
  );

alter table job_rows add column behind integer not null default 0
  constraint only_waiting_jobs_stand_behind check (
    behind = 0 or (behind = 1 and state = 'queued' and target is not null)
  );

-- The law: whatever the claims do, no two jobs of a target are leased at once.
create unique index job_rows_one_a_target on job_rows (target)
  where target is not null and state in ('assigned', 'running');

-- What stands behind another job of its target is in no claim's way.
create index job_rows_behind on job_rows (target, priority desc, run_at, id) where behind = 1;

create index job_rows_halting on job_rows (target, id)
  where target is not null and (state = 'paused' or (state = 'failed' and cleared_at is null));

-- Which job has the target to itself: it is leased, or waits for its retry, or halts the target (paused, failed),
-- or is the next and not yet claimed (reserved = 1). A target without a row is free, and nothing stands behind.
create table target_holders (
  target text primary key,
  job_id integer not null,
  reserved integer not null default 0
) without rowid;

-- The claim walks this index: what stands behind is not in its way.
drop index job_rows_claim;

create index job_rows_claim on job_rows (priority desc, run_at, id)
  where state = 'queued' and parked = 0 and behind = 0;

drop view jobs;

-- For people with a SQL shell.
create view jobs as
select
  id, kind, state, payload, result, error, reason, priority, attempt, max_attempts, forgiven,
  strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') as created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', run_at / 1e6, 'unixepoch') as run_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1e6, 'unixepoch') as started_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1e6, 'unixepoch') as finished_at,
  node, worker,
  strftime('%Y-%m-%dT%H:%M:%fZ', lease_expires_at / 1e6, 'unixepoch') as lease_expires_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', heartbeat_at / 1e6, 'unixepoch') as heartbeat_at,
  dedup_key,
  request is 'cancel' as cancel_requested,
  case state when 'succeeded' then 100 else cast(coalesce(progress, 0) + 0.5 as integer) end
    as progress,
  progress_note,
  strftime('%Y-%m-%dT%H:%M:%fZ', cleared_at / 1e6, 'unixepoch') as cleared_at,
  target
from job_rows;
