-- take_slot: slots only ever go forward, so whoever comes second finds it taken; without a slot none moves
update schedules set last_slot = coalesce(:slot, last_slot)
where name = :name and (:slot is null or last_slot < :slot and paused_at is null)
