-- Schedules: which slot was last seen to, and the job it made. last_job_id is the newest job, slot_job_id the newest that a
-- slot made: the other may have been made by hand.

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
