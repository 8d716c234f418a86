-- Targets and phases: jobs of one target run one at a time, in order; a job runs its phases in order.

-- The law: whatever claims do, no two jobs of a target are leased at once.
create unique index job_rows_one_a_target on job_rows (target)
  where target is not null and state in ('assigned', 'running');

-- A job that stands behind another one of its target is in no claim's way.
create index job_rows_behind on job_rows (target, priority desc, run_at, id) where behind = 1;

create index job_rows_halting on job_rows (target, id)
  where target is not null and (state = 'paused' or (state = 'failed' and cleared_at is null));

-- Which job has the target to itself: it is leased, waits for its retry, halts the target (paused,
-- failed), or is the next and not yet claimed (reserved = 1). A target without a row is free, and no
-- job stands behind.
create table target_holders (
  target text primary key,
  job_id integer not null,
  reserved integer not null default 0
) without rowid;

-- What the nodes declare of the kinds in their catalogs, for those who have none at hand: the names
-- of their phases, in order (a JSON list), where the end of their jobs is posted, and their priority.
-- The kind '' stands for all kinds without a webhook.
create table kind_rules (
  kind text primary key,
  phases text not null default '[]',
  webhook text,
  priority integer not null default 0
) without rowid;

-- The phases of jobs that have started, in order. What a phase that is not finished is called
-- (pending, canceled) follows from the state of its job, as in the view of jobs.
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
  in_attempt integer, -- in which it was begun
  primary key (job_id, name),
  constraint phase_has_a_name check (
    typeof(name) = 'text' and length(name) between 1 and 1000 and instr(name, char(0)) = 0
  ),
  constraint phase_attempts_are_counted check (
    typeof(attempts) = 'integer' and attempts between 0 and 2000000000
    and (in_attempt is null or (typeof(in_attempt) = 'integer' and in_attempt between 0 and 2000000000))
  ),
  constraint phase_times_are_microseconds check (
    (started_at is null or (typeof(started_at) = 'integer'
      and started_at between -62135596800000000 and 253402300799999999))
    and (finished_at is null or (typeof(finished_at) = 'integer'
      and finished_at between -62135596800000000 and 253402300799999999))
  )
) without rowid;
