-- duties: all of them, as people see them
select duty, case when term is not null and expires_at > clock_timestamp() then node end,
       case when term is not null and expires_at > clock_timestamp() then node_id end,
       acquired_at, heartbeat_at,
       case when term is not null then extract(epoch from clock_timestamp() - acquired_at)::float8 end,
       extract(epoch from expires_at - clock_timestamp())::float8,
       last_run_at, runs, items, errors, last_error, hand_overs, clock_timestamp()
from {schema}.duties order by duty
