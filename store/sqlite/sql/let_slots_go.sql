-- let_slots_go: sees to slots by leaving them out
update schedules set last_slot = :up_to, missed = missed + :count where name = :name and last_slot < :up_to
