-- fire_schedule: sees to a slot, once
select taken, job_id from {schema}.fire_schedule(
    %(schedule)s, %(slot)s::timestamptz, %(kind)s, %(payload)s::jsonb, %(priority)s::smallint, %(target)s, %(skip_if_busy)s)
