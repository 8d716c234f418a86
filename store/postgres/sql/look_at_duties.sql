-- look_at_duties: which of these duties are free, when the next of the others runs out, how many nodes live
with now as materialized (select clock_timestamp() as at)
select array(select wanted from unnest(%(duties)s::text[]) wanted
             where not exists (select from {schema}.duties held
                               where held.duty = wanted and held.term is not null and held.expires_at > now.at)
             order by wanted),
       (select extract(epoch from min(held.expires_at) - now.at)::float8 from {schema}.duties held
        where held.duty = any (%(duties)s::text[]) and held.term is not null and held.expires_at > now.at),
       (select count(*)::int from {schema}.nodes node
        where node.phase = 'running' and node.heartbeat_at > now.at - make_interval(secs => %(pauses)s * node.pause_seconds))
from now
