-- renew_duty: extends the lease of a duty whose term still stands, and notes what was done
update duties
set heartbeat_at = :now, expires_at = :expires_at,
  last_run_at = case when :runs > 0 then :now else last_run_at end,
  runs = runs + :runs, items = items + :items, errors = errors + :errors, last_error = coalesce(:last_error, last_error)
where duty = :duty and term = :term
