-- nodes: what the nodes have said of themselves, the oldest first, each with the age of its last sign of life; at most `bound`
select id, name, version, started_at, heartbeat_at, phase, idle, busy, retiring, default_count, max_count, kinds::text,
       extract(epoch from clock_timestamp() - heartbeat_at)::float8, pause_seconds, config_generation, config_hash, load
from {schema}.nodes
where %(young_seconds)s::float8 is null
   or heartbeat_at > clock_timestamp() - make_interval(secs => %(young_seconds)s::float8)
order by started_at, id limit %(bound)s
