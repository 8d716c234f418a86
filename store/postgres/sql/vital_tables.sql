-- vital_tables: our tables: rows, dead rows, when they were vacuumed, their options and sizes
select class.relname::text, pg_stat_get_live_tuples(class.oid), pg_stat_get_dead_tuples(class.oid),
       extract(epoch from clock_timestamp() - greatest(pg_stat_get_last_vacuum_time(class.oid),
                                                       pg_stat_get_last_autovacuum_time(class.oid)))::float8,
       coalesce(class.reloptions, '{}'), pg_total_relation_size(class.oid),
       case when class.relfrozenxid = '0' then 0 else age(class.relfrozenxid)::bigint end
from pg_class class join pg_namespace space on space.oid = class.relnamespace
where space.nspname = '{schema_name}' and class.relkind = 'r'
order by class.relname
limit 200
