-- queue_state: since when the queue is paused, and by whom
select paused_at, paused_by from queue_state
