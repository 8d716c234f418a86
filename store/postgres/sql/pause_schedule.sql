-- pause_schedule: its slots are nobody's until it is resumed
insert into {schema}.schedules as known (name, paused_at) values (%(name)s, clock_timestamp())
on conflict (name) do update set paused_at = clock_timestamp() where known.paused_at is null
