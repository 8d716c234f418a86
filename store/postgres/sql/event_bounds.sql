-- event_bounds: the oldest position that is kept, and the newest there ever was
select coalesce((select log.last - log.size + 1 from {schema}.event_log log order by log.last limit 1),
                case head.last when 0 then 0 else head.last + 1 end), head.last
from {schema}.event_head head
