-- vital_standbys: which standbys commits wait for, and how many of them are there; null = we may not see it
select current_setting('synchronous_standby_names'),
       case when pg_has_role('pg_read_all_stats', 'usage')
            then (select count(*)::int from pg_stat_replication where sync_state in ('sync', 'quorum')) end
