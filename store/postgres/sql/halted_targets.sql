-- halted_targets: how many targets a paused or failed job halts, looking at `bound` such jobs, and the first of them
with halted as materialized (
    select distinct target from (
        select target from {schema}.job_rows
        where target is not null and (state = 'paused' or state = 'failed' and cleared_at is null)
        order by target, id limit %(bound)s) one
)
select count(*), coalesce((array_agg(target order by target))[:%(named)s], '{}'::text[]) from halted
