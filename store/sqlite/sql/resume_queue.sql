-- resume_queue: claims go on; changes nothing if the queue was not paused
update queue_state set paused_at = null, paused_by = null where paused_at is not null
