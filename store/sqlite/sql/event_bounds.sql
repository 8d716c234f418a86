-- event_bounds: the oldest position that is kept, and the newest there ever was
select
  coalesce(
    (select event_log.last - event_log.size + 1 from event_log order by event_log.last limit 1),
    case event_head.last when 0 then 0 else event_head.last + 1 end
  ),
  event_head.last
from event_head
