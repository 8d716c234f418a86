-- begin_schedule: one that is new begins now
insert into schedules (name, last_slot) values (:name, :now) on conflict do nothing
