-- resume_schedule: its slots count again from now on
update {schema}.schedules set paused_at = null, last_slot = greatest(last_slot, clock_timestamp())
where name = %(name)s and paused_at is not null
