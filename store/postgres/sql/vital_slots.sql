-- vital_slots: the replication slots, and how much of the write-ahead log is kept for each
select slot_name::text, active,
       case when pg_is_in_recovery() then null else pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint end, wal_status
from pg_replication_slots
order by slot_name
limit 100
