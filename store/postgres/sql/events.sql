-- The log of events.

-- tell_events: drafts events that belong to no job, in their order
insert into {schema}.event_drafts (type, common)
select told.type, told.data::jsonb
from unnest(%(types)s::text[], %(datas)s::text[]) with ordinality as told (type, data, place)
order by told.place

-- order_events: puts at most so many drafts in order, and gives the newest position
select {schema}.order_events(%(batch)s)

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

-- event_bounds: the oldest position that is kept, and the newest there ever was
select coalesce((select log.last - log.size + 1 from {schema}.event_log log order by log.last limit 1),
                case head.last when 0 then 0 else head.last + 1 end), head.last
from {schema}.event_head head

-- trim_events: forgets the oldest rows of the log, at most so many, up to the first that is young enough to be kept
with first_ones as materialized (
    select last, at from {schema}.event_log order by last limit %(bound)s for update skip locked
)
delete from {schema}.event_log
where last in (
    select last from first_ones
    where last < coalesce((select min(last) from first_ones
                           where at >= clock_timestamp() - make_interval(secs => %(keep)s)), 9223372036854775807))

-- audit_rows: the next `count` jobs behind an id, as far as events tell of them
select id, state, attempt from {schema}.job_rows where id > %(after)s order by id limit %(count)s

-- audit_tally: at one moment the last position, what was told behind it, the counts that are kept, and those of the table's rows
with changes as (
    select coalesce(sum(enqueued), 0) as enqueued, coalesce(sum(pending), 0) as pending, coalesce(sum(queued), 0) as queued,
           coalesce(sum(paused), 0) as paused, coalesce(sum(succeeded), 0) as succeeded,
           coalesce(sum(failed), 0) as failed, coalesce(sum(canceled), 0) as canceled
    from {schema}.count_changes
),
counted as (
    select jsonb_object_agg(state, number) as by_state
    from (select state, count(*) as number from {schema}.job_rows group by state) grouped
),
told as (
    select jsonb_agg(jsonb_build_array(type, job_ids, common ->> 'state') order by id) as drafts
    from {schema}.event_drafts where job_ids is not null
)
select head.last, coalesce(told.drafts, '[]'),
       jsonb_build_object('pending', c.pending + d.pending, 'queued', c.queued + d.queued, 'paused', c.paused + d.paused,
                          'succeeded', c.succeeded + d.succeeded, 'failed', c.failed + d.failed, 'canceled', c.canceled + d.canceled),
       coalesce(counted.by_state, '{}'), (c.enqueued + d.enqueued)::bigint
from {schema}.event_head head, {schema}.job_counts c, changes d, counted, told
