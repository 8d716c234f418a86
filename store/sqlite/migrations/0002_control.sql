-- Control of single jobs: requests to their holders, progress, log, what was spent, keys against
-- doubles.

alter table job_rows add column dedup_key text
  constraint dedup_key_is_short check (
    dedup_key is null
    or (typeof(dedup_key) = 'text' and length(dedup_key) between 1 and 200
      and instr(dedup_key, char(0)) = 0)
  );

alter table job_rows add column request text
  constraint only_a_holder_can_be_asked check (
    request is null
    or ((request = 'cancel' or request = 'pause') and (state = 'assigned' or state = 'running'))
  );

alter table job_rows add column requested_at integer;

alter table job_rows add column progress real
  constraint progress_is_in_percent check (progress between 0 and 100);

alter table job_rows add column progress_note text;

alter table job_rows add column log text;

alter table job_rows add column spent text
  constraint spent_is_json check (spent is null or json_valid(spent));

alter table job_rows add column cleared_at integer;

alter table attempts add column log text;

drop trigger job_rows_transition;

-- As in the first migration, and a waiting job may be paused.
create trigger job_rows_transition before update of state on job_rows
  when old.state <> new.state and instr(
    ' pending>queued pending>canceled'
    || ' queued>assigned queued>running queued>canceled queued>paused'
    || ' assigned>running assigned>queued assigned>succeeded assigned>failed'
    || ' assigned>canceled assigned>paused'
    || ' running>queued running>succeeded running>failed running>canceled running>paused'
    || ' paused>queued paused>canceled'
    || ' failed>queued ',
    ' ' || old.state || '>' || new.state || ' '
  ) = 0
begin
  select raise(abort, 'this state may not follow that one');
end;

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
  strftime('%Y-%m-%dT%H:%M:%fZ', cleared_at / 1e6, 'unixepoch') as cleared_at
from job_rows;
