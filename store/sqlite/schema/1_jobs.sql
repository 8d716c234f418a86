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
  schedule text,
  scheduled_for integer, -- the slot of its schedule
  traceparent text, -- of whoever made it
  changed_at integer, -- by an action, or when its progress was noted
  updated_at integer generated always as (max(
    created_at, coalesce(changed_at, created_at), coalesce(started_at, created_at), coalesce(finished_at, created_at),
    coalesce(requested_at, created_at), coalesce(cleared_at, created_at), coalesce(stale_at, created_at),
    coalesce(heartbeat_at, created_at))) virtual, -- costs nothing until it is read
  constraint id_is_in_walks check (id between 1 and 9223372036854775806), -- as PostgreSQL has it
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
    typeof(attempt) = 'integer' and attempt between 0 and 2000000000
    and typeof(forgiven) = 'integer' and forgiven between 0 and 2000000000
    and (max_attempts is null or (typeof(max_attempts) = 'integer' and max_attempts >= 1))
  ),
  constraint times_are_microseconds check (
    typeof(created_at) = 'integer'
    and created_at between -62135596800000000 and 253402300799999999
    and typeof(run_at) = 'integer'
    and run_at between -62135596800000000 and 253402300799999999
  ),
  constraint start_and_end_are_microseconds check (
    (started_at is null or (typeof(started_at) = 'integer'
      and started_at between -62135596800000000 and 253402300799999999))
    and (finished_at is null or (typeof(finished_at) = 'integer'
      and finished_at between -62135596800000000 and 253402300799999999))
  ),
  constraint rarer_times_are_microseconds check (
    (requested_at is null or (typeof(requested_at) = 'integer'
      and requested_at between -62135596800000000 and 253402300799999999))
    and (cleared_at is null or (typeof(cleared_at) = 'integer'
      and cleared_at between -62135596800000000 and 253402300799999999))
    and (stale_at is null or (typeof(stale_at) = 'integer'
      and stale_at between -62135596800000000 and 253402300799999999))
    and (changed_at is null or (typeof(changed_at) = 'integer'
      and changed_at between -62135596800000000 and 253402300799999999))
  ),
  constraint slot_is_of_a_schedule_and_in_microseconds check (
    (schedule is null
      or (typeof(schedule) = 'text' and length(schedule) <= 200 and instr(schedule, char(0)) = 0))
    and (scheduled_for is null or (typeof(scheduled_for) = 'integer'
      and scheduled_for between -62135596800000000 and 253402300799999999))
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
  constraint note_is_short check (
    (progress_note is null or (typeof(progress_note) = 'text' and length(progress_note) <= 1000))
  ),
  constraint end_is_short check (
    (last_outcome is null or (typeof(last_outcome) = 'text' and length(last_outcome) <= 20))
    and (result is null or length(result) <= 104857600)
  ),
  -- What the largest settings let in.
  constraint rarer_texts_are_short check (
    (reason is null or (typeof(reason) = 'text' and length(reason) <= 2097152))
    and (log is null or (typeof(log) = 'text' and length(log) <= 67108864))
    and (error is null or length(error) <= 8388608)
    and (spent is null or length(spent) <= 524288)
  ),
  constraint holder_is_short check (
    (node is null or (typeof(node) = 'text' and length(node) <= 400))
    and (worker is null or typeof(worker) = 'integer')
    and (claim_token is null or (typeof(claim_token) = 'blob' and length(claim_token) = 16))
  ),
  constraint spent_is_json check (
    spent is null
    or (typeof(spent) = 'text' and instr(spent, char(0)) = 0 and json_valid(spent))
  ),
  constraint only_waiting_jobs_are_parked check (
    parked = 0 or (parked = 1 and state = 'queued')
  ),
  constraint target_is_short check (
    target is null
    or (typeof(target) = 'text' and length(target) between 1 and 200
      and instr(target, char(0)) = 0)
  ),
  constraint traceparent_is_one check (
    traceparent is null
    or (typeof(traceparent) = 'text' and length(traceparent) = 55 and not traceparent glob '*[^0-9a-f-]*')
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

-- For people with a SQL shell; SQLite looks for the tables of a view when it is read. The name of a
-- phase's state follows from what is stored of it and the state of its job, as in store/phases.py. A
-- job that never started has the phases that its kind is said to have.
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
  request is 'pause' as pause_requested,
  case state when 'succeeded' then 100 else cast(0.5 + max(coalesce(progress, 0), coalesce((
    select 100.0 * sum(phase.state = 'succeeded') / count(*) from job_phases phase where phase.job_id = job.id), 0)) as integer) end
    as progress,
  progress_note,
  strftime('%Y-%m-%dT%H:%M:%fZ', cleared_at / 1e6, 'unixepoch') as cleared_at,
  target, traceparent,
  (select phase.name from job_phases phase
   where phase.job_id = job.id and phase.state <> 'succeeded' and job.state <> 'succeeded'
   order by phase.place limit 1) as phase,
  (select json_group_array(json_object('name', shown.name, 'state', shown.state,
     'progress', case shown.state when 'succeeded' then 100
         when 'pending' then 0 else cast(coalesce(shown.progress, 0) + 0.5 as integer) end,
     'result', json(shown.result)))
   from (
     select known.name, known.progress,
       case when known.stored = 'succeeded' or job.state = 'succeeded' then 'succeeded'
         when job.state = 'canceled' then 'canceled'
         when job.state = 'failed' then case known.stored when 'pending' then 'pending' else 'failed' end
         when job.state in ('assigned', 'running') and known.stored = 'running' then 'running'
         else 'pending' end as state,
       case known.stored when 'succeeded' then known.result end as result
     from (
       select begun.place, begun.name, begun.state as stored, begun.progress, begun.result
       from job_phases begun where begun.job_id = job.id
       union all
       select said.key, said.value, 'pending', null, null
       from kind_rules rule, json_each(rule.phases) said
       where rule.kind = job.kind and not exists (select 1 from job_phases begun where begun.job_id = job.id)
     ) known
     order by known.place
   ) shown) as phases,
  (select json_object('url', coalesce(sent.url, wished.url),
     'sent_at', case sent.state when 'delivered' then strftime('%Y-%m-%dT%H:%M:%fZ', sent.ended_at / 1e6, 'unixepoch') end,
     'attempts', coalesce(sent.tries, 0))
   from (
     select coalesce(job.webhook, (select rule.webhook from kind_rules rule where rule.kind = job.kind),
       (select rule.webhook from kind_rules rule where rule.kind = '')) as url
   ) wished
   left join (
     select hook.url, hook.state, hook.ended_at, hook.tries from webhooks hook
     where hook.job_id = job.id and hook.type in ('job.succeeded', 'job.failed', 'job.canceled')
     order by hook.id desc limit 1
   ) sent on true
   where coalesce(sent.url, wished.url) is not null) as webhook,
  strftime('%Y-%m-%dT%H:%M:%fZ', stale_at / 1e6, 'unixepoch') as stale_at,
  schedule, strftime('%Y-%m-%dT%H:%M:%fZ', scheduled_for / 1e6, 'unixepoch') as scheduled_for,
  spent,
  (select queue.tenant from queue_state queue) as tenant,
  case when state in ('assigned', 'running') then node || coalesce('/' || worker, '') end as lease_owner,
  (select json_group_array(json_object('attempt', one.attempt, 'worker', one.worker, 'node', one.node,
     'started_at', strftime('%Y-%m-%dT%H:%M:%fZ', one.started_at / 1e6, 'unixepoch'),
     'finished_at', strftime('%Y-%m-%dT%H:%M:%fZ', one.finished_at / 1e6, 'unixepoch'),
     'outcome', one.outcome, 'error', json(one.error), 'log', one.log))
   from (
     select attempt, worker, node, started_at, finished_at, outcome, error, log
     from attempts past where past.job_id = job.id
     union all
     select job.attempt, job.worker, job.node, job.started_at, job.finished_at, job.last_outcome,
       case when job.last_outcome is not null then job.error end,
       case when job.lease_expires_at is null then job.log else (
         select group_concat(said.words, '') from (
           select words from live_logs said where said.job_id = job.id and said.token = job.claim_token order by said.first
         ) said) end
     where job.lease_expires_at is not null or job.last_outcome is not null
     order by 1
   ) one) as attempts,
  strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') as updated_at
from job_rows job;

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

-- After the change: before it, the row would have to be found once more.
create trigger job_rows_transition after update of state on job_rows
  when old.state <> new.state and not case new.state
    when 'running' then old.state = 'queued' or old.state = 'assigned'
    when 'assigned' then old.state = 'queued'
    when 'succeeded' then old.state = 'running' or old.state = 'assigned'
    when 'failed' then old.state = 'running' or old.state = 'assigned'
    when 'queued' then old.state <> 'succeeded' and old.state <> 'canceled'
    when 'canceled' then old.state <> 'succeeded' and old.state <> 'failed'
    when 'paused' then old.state = 'queued' or old.state = 'running' or old.state = 'assigned'
    else false
  end
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
  primary key (job_id, attempt),
  constraint attempt_is_counted check (typeof(attempt) = 'integer' and attempt between 0 and 2000000000),
  constraint attempt_is_short check (
    (node is null or (typeof(node) = 'text' and length(node) <= 400)) and length(outcome) <= 20
    and (error is null or length(error) <= 8388608)
    and (log is null or (typeof(log) = 'text' and length(log) <= 67108864))
  ),
  constraint attempt_times_are_microseconds check (
    (started_at is null or (typeof(started_at) = 'integer'
      and started_at between -62135596800000000 and 253402300799999999))
    and typeof(finished_at) = 'integer'
    and finished_at between -62135596800000000 and 253402300799999999
  )
) without rowid;

-- What attempts in hand have logged so far, in parts. Their end puts the whole log into the row of the job, or of the attempt,
-- and takes this away; a lease that is lost leaves what is here.
create table live_logs (
  job_id integer not null,
  token blob not null,
  first integer not null, -- the number of its first line
  last integer not null,
  words text not null,
  primary key (job_id, token, first)
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
  paused_by text,
  tenant text not null default 'default' -- as its nodes call it
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
