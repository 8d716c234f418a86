-- pause_queue: no claim that starts after this takes a job; changes nothing if it is paused
update {schema}.queue_state set paused_at = clock_timestamp(), paused_by = %(by)s where paused_at is null
