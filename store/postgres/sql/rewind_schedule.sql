-- rewind_schedule: begins anew where the clock was once further ahead than that
update {schema}.schedules set last_slot = clock_timestamp()
where name = %(name)s and last_slot > clock_timestamp() + %(ahead)s::interval
