-- resume_queue: claims go on; changes nothing if it was not paused; wakes idle workers
with resumed as (
    update {schema}.queue_state set paused_at = null, paused_by = null where paused_at is not null returning only_row
)
select pg_notify('{channel}', '') from resumed
