-- pause_schedule: its slots are nobody's until it is resumed
update schedules set paused_at = :now where name = :name and paused_at is null
