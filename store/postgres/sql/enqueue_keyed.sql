-- enqueue_keyed: makes all of these jobs but those whose key is held; says of each which job it is, and whether it is new
select id, is_new from {schema}.enqueue_keyed(
    %(kinds)s::text[], %(payloads)s::text[], %(priorities)s::smallint[], %(delays)s::float8[],
    %(run_ats)s::timestamptz[], %(max_attempts)s::int[], %(holds)s::bool[], %(keys)s::text[], %(scopes)s::text[],
    %(targets)s::text[], %(webhooks)s::text[])
