-- renew_duties: extends the leases of duties whose terms still stand, and notes what was done; returns them
update {schema}.duties duty
set heartbeat_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s),
    last_run_at = case when report.runs > 0 then clock_timestamp() else duty.last_run_at end,
    runs = duty.runs + report.runs, items = duty.items + report.items, errors = duty.errors + report.errors,
    last_error = coalesce(report.last_error, duty.last_error)
from (select * from unnest(%(duties)s::text[], %(terms)s::uuid[], %(runs)s::int[], %(items)s::bigint[], %(errors)s::int[],
                           %(last_errors)s::text[])
      as given (duty, term, runs, items, errors, last_error) order by duty) report
where duty.duty = report.duty and duty.term = report.term
returning duty.duty
