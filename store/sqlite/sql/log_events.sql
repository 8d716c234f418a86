-- log_events: one row of the log, with positions that were taken for it
insert into event_log (last, at, type, size, jobs, common) values (:last, :now, :type, :size, :jobs, :common)
