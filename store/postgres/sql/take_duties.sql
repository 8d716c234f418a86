-- take_duties: takes those of these duties that nobody has, or whose lease has run out; returns them
-- One that is taken at this moment by somebody else is waited for, and then found to be taken.
insert into {schema}.duties as duty (duty, tenant, node, node_id, term, acquired_at, heartbeat_at, expires_at)
select wanted, %(tenant)s, %(node)s, %(node_id)s, %(term)s, clock_timestamp(), clock_timestamp(),
       clock_timestamp() + make_interval(secs => %(lease_seconds)s)
from unnest(%(duties)s::text[]) wanted order by wanted
on conflict (duty) do update
set tenant = excluded.tenant, node = excluded.node, node_id = excluded.node_id, term = excluded.term,
    acquired_at = clock_timestamp(), heartbeat_at = clock_timestamp(),
    expires_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s),
    hand_overs = duty.hand_overs + (duty.node_id is distinct from excluded.node_id)::int
where duty.term is null or duty.expires_at <= clock_timestamp()
returning duty.duty
