-- Duties: who does the background work that one node at a time does for all.

create table duties (
  duty text primary key,
  tenant text not null default '', -- by what name its holder knows this store
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
  strftime('%Y-%m-%dT%H:%M:%fZ', last_run_at / 1e6, 'unixepoch') as last_run_at,
  items, errors, last_error, hand_overs
from duties;
