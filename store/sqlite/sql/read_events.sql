-- read_events: the first :count rows of the log behind a position
select last, at, type, size, jobs, common from event_log where last > :after order by last limit :count
