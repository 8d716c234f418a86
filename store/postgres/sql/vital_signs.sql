-- vital_signs: the age of the oldest snapshot of this database, who holds one of unknown age, dead rows, bytes
-- Vacuums hold no horizon. What other roles do since when, only a member of pg_read_all_stats sees.
with held as (
    select 'session ' || activity.pid || ' ' || coalesce(activity.backend_xmin, activity.backend_xid)::text as holder,
           extract(epoch from clock_timestamp() - activity.xact_start)::float8 as seconds
    from pg_stat_activity activity
    where activity.datname = current_database() and activity.pid <> pg_backend_pid()
      and (activity.backend_xmin is not null or activity.backend_xid is not null)
      and activity.backend_type is distinct from 'autovacuum worker'
      and not exists (select from pg_stat_progress_vacuum vacuum where vacuum.pid = activity.pid)
    union all
    select 'prepared ' || gid, extract(epoch from clock_timestamp() - prepared)::float8
    from pg_prepared_xacts where database = current_database()
    union all
    select 'slot ' || slot_name || ' ' || xmin::text, null from pg_replication_slots where xmin is not null
    union all
    select 'standby ' || pid || ' ' || backend_xmin::text, null from pg_stat_replication where backend_xmin is not null
),
ours as (
    select class.oid from pg_class class join pg_namespace space on space.oid = class.relnamespace
    where space.nspname = '{schema_name}' and class.relkind = 'r'
)
select (select coalesce(max(seconds), 0) from held),
       (select coalesce(array_agg(holder), '{}') from (select holder from held where seconds is null limit 1000) unknown),
       (select coalesce(sum(pg_stat_get_dead_tuples(oid)), 0)::bigint from ours),
       (select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint from ours)
