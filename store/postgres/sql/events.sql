-- The log of events.

-- record_events: drafts events that belong to no job, in their order
insert into {schema}.event_drafts (type, common)
select event.type, event.data::jsonb
from unnest(%(types)s::text[], %(datas)s::text[]) with ordinality as event (type, data, place)
order by event.place

-- order_events: moves at most `batch` drafts into the log, in order; returns the newest position
select {schema}.order_events(%(batch)s)

-- read_events: one page of the log behind a position: at most `bound` rows, and no more once there are `events` events
-- The last row has no type: it says how far was read (null = there is nothing), and the newest position.
with first_one as materialized (
    select greatest(last - size, %(after)s) as before from {schema}.event_log
    where last > %(after)s order by last limit 1
),
scanned as materialized (
    select log.* from (
        select * from {schema}.event_log where last > %(after)s order by last limit %(bound)s) log, first_one
    where log.last - log.size < first_one.before + %(events)s
)
select last, at, type, size, job_ids, kinds, targets, attempts, workers, common, details, ats from (
    select * from scanned
    where (%(types)s::text[] is null or type = any (%(types)s::text[]) or split_part(type, '.', 1) = any (%(types)s::text[]))
      and (%(job_id)s::bigint is null or %(job_id)s::bigint = any (job_ids))
      and (%(kind)s::text is null or %(kind)s::text = any (kinds))
      and (%(target)s::text is null or %(target)s::text = any (targets))
    order by last) fitting
union all
select (select max(last) from scanned), null, null, null, array[(select last from {schema}.event_head)],
       null, null, null, null, null, null, null

-- event_bounds: the oldest position that is kept, and the newest that was ever given
select coalesce((select log.last - log.size + 1 from {schema}.event_log log order by log.last limit 1),
                case head.last when 0 then 0 else head.last + 1 end), head.last
from {schema}.event_head head

-- trim_events: deletes the oldest rows of the log, at most a batch, up to the first that is young enough to be kept
with first_ones as materialized (
    select last, at from {schema}.event_log order by last limit %(bound)s for update skip locked
)
delete from {schema}.event_log
where last in (
    select last from first_ones
    where last < coalesce((select min(last) from first_ones
                           where at >= clock_timestamp() - make_interval(secs => %(keep)s)), 9223372036854775807))

-- audit_rows: the next `count` jobs behind an id, with what events can be compared with
with read_jobs as materialized (
    select id, state, attempt from {schema}.job_rows where id > %(after)s order by id limit %(count)s
),
{in_hand_of_page}
select id, state, attempt + (state in ('assigned', 'running'))::int
from (select id, {state_of_page} as state, attempt from read_jobs) standing order by id

-- audit_tally: at one moment the last position, the drafts behind it, the kept counts, and those of the table's rows
with leased as ({in_hand_by_state}),
counted as (
    select jsonb_object_agg(state, number) as by_state
    from (select by_row.state, by_row.number - case by_row.state
        when 'queued' then (select assigned + running from leased) else 0 end as number
          from (select state, count(*) as number from {schema}.job_rows group by state) by_row
        union all
          select of.state, of.number from leased
              cross join lateral (values ('assigned', assigned), ('running', running)) of (state, number)) grouped
    where number <> 0
),
waiting as (
    select jsonb_agg(jsonb_build_array(type, job_ids, common ->> 'state') order by id) as drafts
    from {schema}.event_drafts where job_ids is not null
)
select head.last, coalesce(waiting.drafts, '[]'),
       jsonb_build_object('pending', kept.pending, 'queued', kept.queued, 'paused', kept.paused,
                          'succeeded', kept.succeeded, 'failed', kept.failed, 'canceled', kept.canceled),
       coalesce(counted.by_state, '{}'), kept.enqueued
from {schema}.event_head head, {schema}.kept_counts kept, counted, waiting

-- faults: the first jobs that stand in no place, or in two
select job_id, fault from {schema}.check() limit %(most)s
