-- beat: a node says that it lives, and how it is; without kinds those it named last stay; forgets nodes that died long ago, at most 100
with forgotten as (
    delete from {schema}.nodes
    where id = any (array(select id from {schema}.nodes
                          where heartbeat_at < clock_timestamp() - make_interval(secs => %(forget_seconds)s)
                          limit 100 for update skip locked))
      and id <> %(id)s
)
insert into {schema}.nodes as node
    (id, name, version, started_at, heartbeat_at, phase, idle, busy, retiring, default_count, max_count, pause_seconds,
     config_generation, config_hash, load, kinds)
values (%(id)s, %(name)s, %(version)s, clock_timestamp() - make_interval(secs => %(up_seconds)s), clock_timestamp(),
        %(phase)s, %(idle)s, %(busy)s, %(retiring)s, %(default_count)s, %(max_count)s, %(pause_seconds)s,
        %(config_generation)s, %(config_hash)s, %(load)s, %(kinds)s::jsonb)
on conflict (id) do update
set heartbeat_at = excluded.heartbeat_at, phase = excluded.phase, idle = excluded.idle, busy = excluded.busy,
    retiring = excluded.retiring, default_count = excluded.default_count, max_count = excluded.max_count,
    pause_seconds = excluded.pause_seconds, config_generation = excluded.config_generation,
    config_hash = excluded.config_hash, load = excluded.load, kinds = coalesce(excluded.kinds, node.kinds)
