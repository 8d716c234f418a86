-- enqueue_keyed: makes all of these jobs but those whose key is held; says of each which job it is, and whether it is new
select id, is_new from {schema}.enqueue_keyed(
    %(kind)s::text[], %(payload)s::text[], %(priority)s::smallint[], %(delay_seconds)s::float8[],
    %(run_at)s::timestamptz[], %(max_attempts)s::int[], %(hold)s::bool[], %(dedup_key)s::text[], %(dedup_scope)s::text[],
    %(target)s::text[], %(webhook)s::text[])
