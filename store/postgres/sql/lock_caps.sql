-- lock_caps: makes claims that keep to caps wait for each other until they are committed, so that each counts what the one before it took
select pg_advisory_xact_lock(1836413798, hashtext('{schema_name}'))
