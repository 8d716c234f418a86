-- vital_connections: how many connections the server, our role and our database may have, and have
select current_setting('max_connections')::int,
       current_setting('superuser_reserved_connections')::int
           + coalesce(current_setting('reserved_connections', true), '0')::int,
       (select count(*)::int from pg_stat_activity where datid is not null),
       (select count(*)::int from pg_stat_activity where application_name = 'musterd' and datname = current_database()),
       (select rolconnlimit from pg_roles where rolname = current_user),
       (select count(*)::int from pg_stat_activity where usename = current_user),
       (select datconnlimit from pg_database where datname = current_database()),
       (select count(*)::int from pg_stat_activity where datname = current_database())
