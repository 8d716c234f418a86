-- trim_events: forgets the oldest rows of the log, at most so many, up to the first that is young enough to be kept
with first_ones as materialized (
    select last, at from {schema}.event_log order by last limit %(bound)s for update skip locked
)
delete from {schema}.event_log
where last in (
    select last from first_ones
    where last < coalesce((select min(last) from first_ones
                           where at >= clock_timestamp() - make_interval(secs => %(keep)s)), 9223372036854775807))
