-- vital_now: the clock that all of the queue goes by
select extract(epoch from clock_timestamp())::float8
