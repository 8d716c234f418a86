-- pause_queue: from now on nothing is claimed; changes nothing if it was paused already
update queue_state set paused_at = :now, paused_by = :by where paused_at is null
