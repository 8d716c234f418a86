-- beat: a node says that it lives, and how it is; without kinds those it named last stay
insert into nodes
  (id, name, version, started_at, heartbeat_at, phase, idle, busy, retiring, default_count, max_count,
  pause_seconds, config_generation, config_hash, load, kinds)
values
  (:id, :name, :version, :started_at, :now, :phase, :idle, :busy, :retiring, :default_count, :max_count,
  :pause_seconds, :config_generation, :config_hash, :load, :kinds)
on conflict (id) do update
set heartbeat_at = excluded.heartbeat_at, phase = excluded.phase, idle = excluded.idle,
  busy = excluded.busy, retiring = excluded.retiring, default_count = excluded.default_count,
  max_count = excluded.max_count, pause_seconds = excluded.pause_seconds,
  config_generation = excluded.config_generation, config_hash = excluded.config_hash, load = excluded.load,
  kinds = coalesce(excluded.kinds, nodes.kinds)
