-- read_events: what stands in the log behind a position, as far as one page goes: at most `bound` rows, and no further once there are `events` events
-- The last row is without a type: it says how far was looked (null = there is nothing), and the newest position.
with first_one as materialized (
    select greatest(last - size, %(after)s) as before from {schema}.event_log
    where last > %(after)s order by last limit 1
),
looked as materialized (
    select log.* from (
        select * from {schema}.event_log where last > %(after)s order by last limit %(bound)s) log, first_one
    where log.last - log.size < first_one.before + %(events)s
)
select last, at, type, size, job_ids, kinds, targets, attempts, workers, common, details from (
    select * from looked
    where (%(types)s::text[] is null or type = any (%(types)s::text[]) or split_part(type, '.', 1) = any (%(types)s::text[]))
      and (%(job_id)s::bigint is null or %(job_id)s::bigint = any (job_ids))
      and (%(kind)s::text is null or %(kind)s::text = any (kinds))
      and (%(target)s::text is null or %(target)s::text = any (targets))
    order by last) fitting
union all
select (select max(last) from looked), null, null, null, array[(select last from {schema}.event_head)],
       null, null, null, null, null, null
