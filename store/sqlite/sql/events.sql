-- The log of events.

-- log_events: one row of the log, with the next :size positions
insert into event_log (last, at, type, size, jobs, common)
values ((select last from event_head) + :size, :now, :type, :size, :jobs, :common)

-- newest_event: the newest position there ever was
select last from event_head

-- event_bounds: the oldest position that is kept, and the newest there ever was
select
  coalesce(
    (select event_log.last - event_log.size + 1 from event_log order by event_log.last limit 1),
    case event_head.last when 0 then 0 else event_head.last + 1 end
  ),
  event_head.last
from event_head

-- read_events: the first :count rows of the log behind a position
select last, at, type, size, jobs, common from event_log where last > :after order by last limit :count

-- trim_events: forgets the oldest rows of the log, at most :count, up to the first that is young enough to be kept
delete from event_log
where last in (
  with first_ones as materialized (
    select last, at from event_log order by last limit :count
  )
  select last from first_ones
  where last < coalesce((select min(last) from first_ones where at >= :oldest), 9223372036854775807)
)
