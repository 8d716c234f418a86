-- vital_server: the server, our role, and the settings that a fresh session of this role gets
select current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery(), current_user::text,
       (select rolsuper from pg_roles where rolname = current_user), pg_has_role('pg_read_all_stats', 'usage'),
       has_database_privilege(current_database(), 'create'),
       (select jsonb_object_agg(name, reset_val) from pg_settings where name in (
           'autovacuum', 'track_counts', 'fsync', 'full_page_writes', 'synchronous_commit', 'default_transaction_isolation',
           'default_transaction_read_only', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout',
           'idle_session_timeout', 'transaction_timeout', 'autovacuum_max_workers', 'autovacuum_naptime'))
