-- others: what room the nodes but :me have, and those of them before it by id; and how much of it without those who are idle
with room as (
  select
    max(0, max_count - busy) as free,
    max(0, max_count - busy - idle) as unhired,
    id < :me as is_before
  from nodes
  where id <> :me and phase = 'running' and heartbeat_at > :now - :pauses * pause_seconds
)
select
  coalesce(sum(free), 0),
  coalesce(sum(free) filter (where is_before), 0),
  coalesce(sum(unhired), 0),
  coalesce(sum(unhired) filter (where is_before), 0)
from room
