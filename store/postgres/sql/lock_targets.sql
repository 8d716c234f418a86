-- lock_targets: takes the rows of those who have these targets, in order, before any of their jobs is settled
select target from {schema}.target_holders where target = any (%(targets)s::text[]) order by target for update
