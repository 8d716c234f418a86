-- let_slots_go: sees to slots by leaving them out
update {schema}.schedules set last_slot = %(up_to)s, missed = missed + %(count)s
where name = %(name)s and last_slot < %(up_to)s
