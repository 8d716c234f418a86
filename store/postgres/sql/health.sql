-- What the doctor and the metrics ask about the server and the tables.

-- vital_server: the server, our role, and the settings that a fresh session of this role gets
select current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery(), current_user::text,
       (select rolsuper from pg_roles where rolname = current_user), pg_has_role('pg_read_all_stats', 'usage'),
       has_database_privilege(current_database(), 'create'),
       (select jsonb_object_agg(name, reset_val) from pg_settings where name in (
           'autovacuum', 'track_counts', 'fsync', 'full_page_writes', 'synchronous_commit', 'default_transaction_isolation',
           'default_transaction_read_only', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout',
           'idle_session_timeout', 'transaction_timeout', 'autovacuum_max_workers', 'autovacuum_naptime'))

-- vital_now: the store's clock, which the whole queue uses
select extract(epoch from clock_timestamp())::float8

-- vital_connections: how many connections the server, our role and our database may have, and how many they have
select current_setting('max_connections')::int,
       current_setting('superuser_reserved_connections')::int
           + coalesce(current_setting('reserved_connections', true), '0')::int,
       (select count(*)::int from pg_stat_activity where datid is not null),
       (select count(*)::int from pg_stat_activity where application_name = 'musterd' and datname = current_database()),
       (select rolconnlimit from pg_roles where rolname = current_user),
       (select count(*)::int from pg_stat_activity where usename = current_user),
       (select datconnlimit from pg_database where datname = current_database()),
       (select count(*)::int from pg_stat_activity where datname = current_database())

-- vital_signs: the age of the oldest snapshot of this database, holders of snapshots of unknown age, dead rows, bytes
-- Vacuums hold back nothing. Only a member of pg_read_all_stats sees since when other roles have been busy.
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

-- vital_holders: what keeps dead rows of this database from being removed, the holder that reaches furthest back first
select 'session' as sort, activity.pid::text as id, coalesce(activity.usename::text, '') as role,
       coalesce(activity.application_name, '') as application, coalesce(activity.state, '') as state,
       extract(epoch from clock_timestamp() - activity.xact_start)::float8 as age_seconds,
       greatest(age(activity.backend_xmin), age(activity.backend_xid))::bigint as age_transactions
from pg_stat_activity activity
where activity.datname = current_database() and activity.pid <> pg_backend_pid()
  and (activity.backend_xmin is not null or activity.backend_xid is not null)
  and activity.backend_type is distinct from 'autovacuum worker'
  and not exists (select from pg_stat_progress_vacuum vacuum where vacuum.pid = activity.pid)
union all
select 'prepared', gid, owner::text, '', '', extract(epoch from clock_timestamp() - prepared)::float8, age(transaction)::bigint
from pg_prepared_xacts where database = current_database()
union all
select 'slot', slot_name::text, '', '', case when active then 'active' else 'inactive' end, null, age(xmin)::bigint
from pg_replication_slots where xmin is not null
union all
select 'standby', pid::text, coalesce(usename::text, ''), coalesce(application_name, ''), coalesce(state, ''), null,
       age(backend_xmin)::bigint
from pg_stat_replication where backend_xmin is not null
order by age_transactions desc, age_seconds desc nulls last
limit %(most)s

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

-- vital_slots: the replication slots, and how much of the write-ahead log is kept for each
select slot_name::text, active,
       case when pg_is_in_recovery() then null else pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint end, wal_status
from pg_replication_slots
order by slot_name
limit 100

-- vital_standbys: the standbys that commits wait for, and how many are connected; null = we may not see it
select current_setting('synchronous_standby_names'),
       case when pg_has_role('pg_read_all_stats', 'usage')
            then (select count(*)::int from pg_stat_replication where sync_state in ('sync', 'quorum')) end

-- vital_rights: the rights that a daemon needs in this schema and our role lacks; nothing where there is no schema
-- The cases are there because the planner may ask for a right before it checks the sort of an object.
with space as (select oid from pg_namespace where nspname = '{schema_name}'),
wanted as (
    select 'schema {schema_name}' as thing, 'USAGE' as privilege, has_schema_privilege(oid, 'USAGE') as granted, 1 as place
    from space
    union all
    select 'table ' || class.relname, privilege, case when class.relkind = 'r' then has_table_privilege(class.oid, privilege) end, 2
    from space join pg_class class on class.relnamespace = space.oid and class.relkind = 'r',
         unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) privilege
    where class.relname <> 'schema_migrations' or privilege = 'SELECT'
    union all
    select 'sequence ' || class.relname, 'USAGE', case when class.relkind = 'S' then has_sequence_privilege(class.oid, 'USAGE') end,
        3
    from space join pg_class class on class.relnamespace = space.oid and class.relkind = 'S'
    union all
    select 'function ' || proc.proname, 'EXECUTE', has_function_privilege(proc.oid, 'EXECUTE'), 4
    from space join pg_proc proc on proc.pronamespace = space.oid
)
select distinct thing, privilege, place from wanted where not granted
order by place, thing, privilege
limit 100
