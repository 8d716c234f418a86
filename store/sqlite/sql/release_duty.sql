-- release_duty: gives a duty up, fenced by its term
update duties
set term = null, expires_at = null,
  last_run_at = case when :runs > 0 then :now else last_run_at end,
  runs = runs + :runs, items = items + :items, errors = errors + :errors, last_error = coalesce(:last_error, last_error)
where duty = :duty and term = :term
