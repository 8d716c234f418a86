-- resume_schedule: its slots count again from now on
update schedules set paused_at = null, last_slot = max(last_slot, :now) where name = :name and paused_at is not null
