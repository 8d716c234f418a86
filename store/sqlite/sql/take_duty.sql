-- take_duty: takes a duty that nobody has, or whose lease has run out
insert into duties (duty, tenant, node, node_id, term, acquired_at, heartbeat_at, expires_at)
values (:duty, :tenant, :node, :node_id, :term, :now, :now, :expires_at)
on conflict (duty) do update
set tenant = excluded.tenant, node = excluded.node, term = excluded.term,
  hand_overs = hand_overs + (node_id is not excluded.node_id), node_id = excluded.node_id,
  acquired_at = excluded.acquired_at, heartbeat_at = excluded.heartbeat_at, expires_at = excluded.expires_at
where term is null or expires_at <= :now
