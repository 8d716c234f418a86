-- The distinct priorities of claimable jobs downwards, one probe of the index each, so that jobs which are not yet due cost
-- nothing, however many there are; and where in each of them to begin. A priority with a mark needs no probe.
ladder (priority) as (
    select 32768
  union all
    select coalesce((select lower.priority::int from {schema}.job_rows lower
                     where lower.state = 'queued' and not lower.parked and not lower.behind
                       and lower.priority < ladder.priority /*more{*/ and lower.priority > coalesce(marked.priority, -32769) /*}*/
                     order by lower.priority desc limit 1) /*more{*/, marked.priority /*}*/)
    from ladder /*more{*/ cross join lateral (select max(priority) as priority from marks where marks.priority < ladder.priority) marked /*}*/
    where ladder.priority is not null
),
/*more{*/
marks as materialized (
    select priority, run_at - make_interval(secs => %(late_seconds)s) as run_at, id
    from unnest(%(mark_priorities)s::int[], %(mark_run_ats)s::timestamptz[], %(mark_ids)s::bigint[]) mark (priority, run_at, id)
),
/*}*/
levels as (
    select ladder.priority /*more{*/, coalesce(mark.run_at, '-infinity') as first_run_at, coalesce(mark.id, 0) as first_id /*}*/
    from ladder /*more{*/ left join marks mark on mark.priority = ladder.priority /*}*/ where ladder.priority < 32768
)
