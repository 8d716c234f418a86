-- duties: all of them, as people see them
select duty, node, node_id, term, acquired_at, heartbeat_at, expires_at, last_run_at, runs, items, errors, last_error,
  hand_overs
from duties order by duty
