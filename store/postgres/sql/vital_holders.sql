-- vital_holders: who keeps dead rows of this database from being removed, the one that reaches furthest back first
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
