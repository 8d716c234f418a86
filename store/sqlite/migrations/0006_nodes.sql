-- What the daemon says of itself, every few seconds.
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
  pause_seconds real not null, -- it says again that it lives no later than this
  kinds text check (kinds is null or json_valid(kinds))
) without rowid;
