-- Nodes, duties and schedules: what the daemon says of itself, and what it does for all.

create table nodes (
  id blob primary key,
  name text not null,
  version text not null,
  started_at integer not null,
  heartbeat_at integer not null,
  phase text not null check (phase in ('starting', 'running', 'draining', 'stopped')),
  idle integer not null,
  busy integer not null,
  retiring integer not null,
  default_count integer not null,
  max_count integer not null,
  pause_seconds real not null, -- the next heartbeat comes no later than this
  kinds text check (kinds is null or json_valid(kinds)),
  config_generation integer, -- how many configurations it has had since its start
  config_hash text, -- of what nodes of one store must agree on
  load real, -- of its machine in the last minute, for each core
  wish integer -- workers that it wishes for, before limits
) without rowid;

-- Who does the background work that one node at a time does for all.
create table duties (
  duty text primary key,
  tenant text not null default '', -- the name by which its holder knows this store
  node text,
  node_id blob,
  term blob, -- null = nobody has it
  acquired_at integer,
  heartbeat_at integer,
  expires_at integer,
  last_run_at integer,
  runs integer not null default 0,
  items integer not null default 0,
  errors integer not null default 0,
  last_error text,
  hand_overs integer not null default 0,
  run_seconds real not null default 0, -- of all runs together
  running_since integer, -- of the run that was under way at the last sign of life
  constraint a_duty_is_held_by_a_node_for_a_while check (
    term is null
    or (node is not null and node_id is not null and acquired_at is not null and expires_at is not null)
  )
) without rowid;

create view duty_leaders as
select
  duty, tenant, node,
  strftime('%Y-%m-%dT%H:%M:%fZ', acquired_at / 1e6, 'unixepoch') as acquired_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', heartbeat_at / 1e6, 'unixepoch') as heartbeat_at,
  (julianday('now') - 2440587.5) * 86400 - acquired_at / 1e6 as held_for, -- seconds
  strftime('%Y-%m-%dT%H:%M:%fZ', last_run_at / 1e6, 'unixepoch') as last_run_at,
  items, errors, last_error, hand_overs,
  term is not null and expires_at / 1e6 > (julianday('now') - 2440587.5) * 86400 as is_held,
  runs, run_seconds,
  strftime('%Y-%m-%dT%H:%M:%fZ', running_since / 1e6, 'unixepoch') as running_since
from duties;

-- The past of the queue, as charts draw it: rows of steps of three lengths, each kept for its time.
-- A step begins at at_seconds, since the epoch. Of what is seen of the queue a row has the highest.
create table history_queue (
  step_seconds integer not null,
  at_seconds integer not null,
  depth integer not null,
  oldest_seconds real not null,
  crew integer not null,
  wish integer not null,
  max_count integer not null,
  stands_seconds real not null, -- for so long nothing newer is to be expected
  primary key (step_seconds, at_seconds)
) without rowid;

-- What became of jobs. The kind '' stands for all kinds together. The spreads, JSON lists,
-- count values within bounds that grow by half an octave each.
create table history_kinds (
  step_seconds integer not null,
  at_seconds integer not null,
  kind text not null,
  succeeded integer not null,
  failed integer not null,
  canceled integer not null,
  retried integer not null,
  waits text not null,
  runs text not null,
  primary key (step_seconds, at_seconds, kind)
) without rowid;

create table history_marks (
  at_seconds real not null,
  what text not null,
  node text not null,
  said text not null,
  primary key (at_seconds, what, node)
) without rowid;

-- Which slot was last dealt with, and the job it made. last_job_id is the newest job, slot_job_id
-- the newest that a slot made: the other may have been made by hand.
create table schedules (
  name text primary key check (length(name) between 1 and 100),
  last_slot integer not null,
  last_fired_at integer,
  last_job_id integer,
  slot_job_id integer,
  fired integer not null default 0,
  skipped integer not null default 0,
  missed integer not null default 0,
  paused_at integer
) without rowid;

-- The decisions of the supervisor. A row has a run of them: `ticks` that are alike but for their
-- times, evenly from `at` to `until`, which are an hour apart at most. The latest run grows.
create table scaling_journal (
  at integer not null, -- by the clock of the node, as its log
  node_id blob not null,
  node text not null,
  until integer not null,
  ticks integer not null,
  policy text not null,
  default_count integer, -- the bounds that were in force
  max_count integer,
  due integer, -- null = the queue could not be observed
  others_free integer,
  share integer,
  room integer,
  busy integer not null,
  size_before integer not null,
  raw_wish integer,
  because text,
  decided_by text check (decided_by is null or json_valid(decided_by)), -- {"kind", "job"}
  slack_seconds real,
  limited_by text,
  desired integer not null,
  hired integer not null,
  taken_back integer not null,
  retired integer not null,
  candidate text check (candidate is null or json_valid(candidate)), -- what [scaling.candidate] would have decided
  primary key (at, node_id),
  constraint a_run_has_a_tick_at_each_end check (ticks >= 1 and until >= at)
) without rowid;

-- Hours of the past beside the model: how long jobs waited as it was, and as the model has it.
create table compared_hours (
  at integer primary key, -- when it began
  seconds real not null, -- so much of its end was compared
  attempts integer not null,
  skipped text, -- why nothing was
  was text check (was is null or json_valid(was)),
  present text check (present is null or json_valid(present)), -- with the settings that were in force
  candidate text check (candidate is null or json_valid(candidate)) -- with those of [scaling.candidate]
);
