-- nodes: what the nodes have said of themselves, the oldest first, each with the age of its last sign of life; at most :bound
select id, name, version, started_at, heartbeat_at, phase, idle, busy, retiring, default_count,
  max_count, kinds, :now - heartbeat_at, pause_seconds, config_generation, config_hash, load
from nodes
where :young is null or heartbeat_at > :now - :young
order by started_at, id
limit :bound
