-- rewind_schedule: begins anew where the clock was once further ahead than that
update schedules set last_slot = :now where name = :name and last_slot > :now + :ahead
