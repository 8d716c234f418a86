-- The queue: jobs, their earlier attempts, the queue's switch, and counters that triggers keep exact.
-- Times are whole microseconds since 1970-01-01 UTC, within the years 1 to 9999.

create table job_rows (
  id integer primary key autoincrement,
  kind text not null,
  state text not null default 'queued',
  payload text not null default '{}',
  result text,
  error text,
  reason text,
  priority integer not null default 0,
  attempt integer not null default 0,
  max_attempts integer,
  forgiven integer not null default 0, -- claims so far that burned no attempt
  created_at integer not null,
  run_at integer not null,
  started_at integer,
  finished_at integer,
  node text,
  worker integer,
  claim_token blob,
  lease_expires_at integer,
  heartbeat_at integer,
  last_outcome text,
  dedup_key text,
  request text, -- what its holder is asked for
  requested_at integer,
  progress real,
  progress_note text,
  log text,
  spent text,
  cleared_at integer,
  parked integer not null default 0, -- due, but as many jobs of its kind run as may
  target text,
  behind integer not null default 0, -- another job of its target goes first
  webhook text,
  stale_at integer,
  constraint kind_is_a_name check (
    typeof(kind) = 'text' and length(kind) between 1 and 100 and instr(kind, char(0)) = 0
  ),
  constraint payload_is_json check (
    typeof(payload) = 'text' and instr(payload, char(0)) = 0 and json_valid(payload)
  ),
  constraint result_is_json check (
    result is null
    or (typeof(result) = 'text' and instr(result, char(0)) = 0 and json_valid(result))
  ),
  constraint error_is_json check (
    error is null
    or (typeof(error) = 'text' and instr(error, char(0)) = 0 and json_valid(error))
  ),
  constraint priority_is_a_smallint check (
    typeof(priority) = 'integer' and priority between -32768 and 32767
  ),
  constraint attempts_are_counted check (
    typeof(attempt) = 'integer' and attempt >= 0
    and typeof(forgiven) = 'integer' and forgiven >= 0
    and (max_attempts is null or (typeof(max_attempts) = 'integer' and max_attempts >= 1))
  ),
  constraint times_are_microseconds check (
    typeof(created_at) = 'integer'
    and created_at between -62135596800000000 and 253402300799999999
    and typeof(run_at) = 'integer'
    and run_at between -62135596800000000 and 253402300799999999
  ),
  constraint dedup_key_is_short check (
    dedup_key is null
    or (typeof(dedup_key) = 'text' and length(dedup_key) between 1 and 200
      and instr(dedup_key, char(0)) = 0)
  ),
  constraint only_a_holder_can_be_asked check (
    request is null
    or ((request = 'cancel' or request = 'pause') and (state = 'assigned' or state = 'running'))
  ),
  constraint progress_is_in_percent check (progress between 0 and 100),
  constraint spent_is_json check (spent is null or json_valid(spent)),
  constraint only_waiting_jobs_are_parked check (
    parked = 0 or (parked = 1 and state = 'queued')
  ),
  constraint target_is_short check (
    target is null
    or (typeof(target) = 'text' and length(target) between 1 and 200
      and instr(target, char(0)) = 0)
  ),
  constraint only_waiting_jobs_stand_behind check (
    behind = 0 or (behind = 1 and state = 'queued' and target is not null)
  ),
  constraint webhook_is_short check (
    webhook is null
    or (typeof(webhook) = 'text' and length(webhook) between 1 and 2000
      and instr(webhook, char(0)) = 0)
  ),
  -- One `case`, because every change evaluates it: `in` lists cost a temporary table each time.
  constraint state_is_whole check (
    case state
      when 'running' then lease_expires_at is not null and heartbeat_at is not null
        and claim_token is not null and length(claim_token) = 16 and node is not null
        and attempt >= 1 and started_at is not null
      when 'assigned' then lease_expires_at is not null and heartbeat_at is not null
        and claim_token is not null and length(claim_token) = 16 and node is not null
        and attempt >= 1
      when 'succeeded' then
        lease_expires_at is null and heartbeat_at is null and finished_at is not null
      when 'queued' then lease_expires_at is null and heartbeat_at is null
      when 'pending' then lease_expires_at is null and heartbeat_at is null
      when 'paused' then lease_expires_at is null and heartbeat_at is null
      when 'failed' then
        lease_expires_at is null and heartbeat_at is null and finished_at is not null
      when 'canceled' then
        lease_expires_at is null and heartbeat_at is null and finished_at is not null
      else false
    end
  )
);

-- The order of claims, without the jobs that are parked or stand behind. Leases are in no index: a
-- renewal moves nothing.
create index job_rows_claim on job_rows (priority desc, run_at, id)
  where state = 'queued' and parked = 0 and behind = 0;

create index job_rows_parked on job_rows (kind, priority desc, run_at, id) where parked = 1;

create index job_rows_active on job_rows (id) where state = 'assigned' or state = 'running';

create index job_rows_resting on job_rows (state, id)
  where state = 'pending' or state = 'paused' or state = 'failed' or state = 'canceled';

create trigger job_rows_first_state before insert on job_rows
  when new.state not in ('pending', 'queued') or new.attempt <> 0
begin
  select raise(abort, 'a new job is pending or queued, with attempt 0');
end;

-- Searched as one text: an `in` list of this length would cost a temporary table at every change.
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

-- Attempts that ended and were not their job's last; the latest one is on the job's own row.
create table attempts (
  job_id integer not null,
  attempt integer not null,
  node text,
  worker integer,
  started_at integer,
  finished_at integer not null,
  outcome text not null,
  error text,
  log text,
  primary key (job_id, attempt)
) without rowid;

-- A key belongs to one job at most. `until` null = until its job has ended.
create table dedup_keys (
  key text primary key,
  job_id integer not null,
  until integer
) without rowid;

create index dedup_keys_until on dedup_keys (until) where until is not null;

create table queue_state (
  id integer primary key check (id = 1),
  paused_at integer,
  paused_by text
);

insert into queue_state (id) values (1);

create table job_counts (
  name text primary key,
  number integer not null
) without rowid;

insert into job_counts (name, number) values
  ('pending', 0), ('queued', 0), ('assigned', 0), ('running', 0), ('paused', 0),
  ('succeeded', 0), ('failed', 0), ('canceled', 0), ('enqueued', 0);

create trigger job_counts_insert after insert on job_rows
begin
  update job_counts set number = number + 1 where name = new.state;
  update job_counts set number = number + 1 where name = 'enqueued';
end;

create trigger job_counts_update after update of state on job_rows when old.state <> new.state
begin
  update job_counts set number = number - 1 where name = old.state;
  update job_counts set number = number + 1 where name = new.state;
end;

create trigger job_counts_delete after delete on job_rows
begin
  update job_counts set number = number - 1 where name = old.state;
end;
