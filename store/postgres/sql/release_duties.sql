-- release_duties: gives duties up, each fenced by its term, and wakes the nodes that would take them
with released as (
    update {schema}.duties duty
    set term = null, expires_at = null,
        last_run_at = case when report.runs > 0 then clock_timestamp() else duty.last_run_at end,
        runs = duty.runs + report.runs, items = duty.items + report.items, errors = duty.errors + report.errors,
        last_error = coalesce(report.last_error, duty.last_error)
    from unnest(%(duties)s::text[], %(terms)s::uuid[], %(runs)s::int[], %(items)s::bigint[], %(errors)s::int[],
                %(last_errors)s::text[]) as report (duty, term, runs, items, errors, last_error)
    where duty.duty = report.duty and duty.term = report.term
    returning duty.duty
)
select pg_notify('{channel}', 'duties') from released limit 1
