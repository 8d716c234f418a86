-- trim_events: forgets the oldest rows of the log, at most :count, up to the first that is young enough to be kept
delete from event_log
where last in (
  with first_ones as materialized (
    select last, at from event_log order by last limit :count
  )
  select last from first_ones
  where last < coalesce((select min(last) from first_ones where at >= :oldest), 9223372036854775807)
)
