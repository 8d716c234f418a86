-- The past: of the queue, in steps, and of decisions, runs of like ones as one row, with the hours beside the model.

-- add_history: adds what became of jobs to the rows of the step that has just ended, of each length, and marks; gives the store's
-- time
-- Told within a step's first half, it belongs to the step before: nodes tell when a step is over. All nodes write rows in one
-- order.
with noted as materialized (select extract(epoch from clock_timestamp())::float8 as at),
added as (
    insert into {schema}.history_kinds as old
        (step_seconds, at_seconds, kind, succeeded, failed, canceled, retried, waits, runs)
    select step, (floor(noted.at - %(late)s) - mod(floor(noted.at - %(late)s)::bigint, step))::bigint,
           ended.kind, ended.succeeded, ended.failed, ended.canceled, ended.retried, ended.waits, ended.runs
    from noted cross join unnest(%(steps)s::int[]) step
    cross join jsonb_to_recordset(%(ended)s::jsonb) as ended
        (kind text, succeeded bigint, failed bigint, canceled bigint, retried bigint, waits bigint[], runs bigint[])
    order by step, ended.kind
    on conflict (step_seconds, at_seconds, kind) do update
    set succeeded = old.succeeded + excluded.succeeded, failed = old.failed + excluded.failed,
        canceled = old.canceled + excluded.canceled, retried = old.retried + excluded.retried,
        waits = {schema}.sum_of_each(old.waits, excluded.waits), runs = {schema}.sum_of_each(old.runs, excluded.runs)
),
marked as (
    insert into {schema}.history_marks (at_seconds, what, node, said)
    select noted.at, mark.what, mark.node, mark.said
    from noted cross join jsonb_to_recordset(%(marks)s::jsonb) as mark (what text, node text, said text)
    on conflict do nothing
)
select at from noted

-- look_history: the highest that were seen of the queue, in the rows of the step under way, of each length
insert into {schema}.history_queue as old
    (step_seconds, at_seconds, depth, oldest_seconds, crew, wish, max_count, stands_seconds)
select step, (floor(now.at) - mod(floor(now.at)::bigint, step))::bigint, %(depth)s::bigint, %(oldest_seconds)s::float8,
       %(crew)s::int, %(wish)s::int, %(max_count)s::int, %(stands_seconds)s::float8
from unnest(%(steps)s::int[]) step cross join (select extract(epoch from clock_timestamp())::float8 as at) now
order by step
on conflict (step_seconds, at_seconds) do update
set depth = greatest(old.depth, excluded.depth), oldest_seconds = greatest(old.oldest_seconds, excluded.oldest_seconds),
    crew = greatest(old.crew, excluded.crew), wish = greatest(old.wish, excluded.wish),
    max_count = greatest(old.max_count, excluded.max_count), stands_seconds = excluded.stands_seconds

-- queue_history: what was seen of the queue, the newest first
select at_seconds, depth, oldest_seconds, crew, wish, max_count, stands_seconds
from {schema}.history_queue
where step_seconds = %(step)s and at_seconds >= %(since)s::float8 and at_seconds < %(until)s::float8
order by at_seconds desc limit %(most)s

-- kind_history: what became of jobs, the newest first
select at_seconds, kind, succeeded, failed, canceled, retried, waits, runs
from {schema}.history_kinds
where step_seconds = %(step)s and at_seconds >= %(since)s::float8 and at_seconds < %(until)s::float8
  and (%(by_kind)s::bool or kind = '')
order by at_seconds desc, kind desc limit %(most)s

-- mark_history: what happened once, the newest first
select at_seconds, what, node, said
from {schema}.history_marks
where at_seconds >= %(since)s::float8 and at_seconds < %(until)s::float8
order by at_seconds desc limit %(most)s

-- trim_history: deletes rows whose time is over, at most `batch` of each sort and length; gives how many
with now as materialized (select extract(epoch from clock_timestamp())::float8 as at),
kept as (
    select step, now.at - age as until from now cross join unnest(%(steps)s::int[], %(ages)s::float8[]) as each (step, age)
),
looks as (
    delete from {schema}.history_queue where (step_seconds, at_seconds) in (
        select old.step_seconds, old.at_seconds from kept cross join lateral (
            select step_seconds, at_seconds from {schema}.history_queue
            where step_seconds = kept.step and at_seconds < kept.until order by at_seconds limit %(batch)s) old)
    returning 1
),
ended as (
    delete from {schema}.history_kinds where (step_seconds, at_seconds, kind) in (
        select old.step_seconds, old.at_seconds, old.kind from kept cross join lateral (
            select step_seconds, at_seconds, kind from {schema}.history_kinds
            where step_seconds = kept.step and at_seconds < kept.until order by at_seconds, kind limit %(batch)s) old)
    returning 1
),
marks as (
    delete from {schema}.history_marks where (at_seconds, what, node) in (
        select at_seconds, what, node from {schema}.history_marks
        where at_seconds < (select max(until) from (select min(until) as until from kept) oldest)
            order by at_seconds limit %(batch)s)
    returning 1
)
select (select count(*) from looks) + (select count(*) from ended) + (select count(*) from marks)

-- write_journal: adds runs, and lets those grow that are known; the same ones again change nothing
insert into {schema}.scaling_journal as known
select * from jsonb_populate_recordset(null::{schema}.scaling_journal, %(runs)s::jsonb) run order by run.at, run.node_id
on conflict (at, node_id) do update set until = excluded.until, ticks = excluded.ticks where excluded.ticks > known.ticks

-- read_journal: the newest runs that touch a stretch of time, the newest first
select node_id, node, at, until, ticks, policy, default_count, max_count, due, others_free, share, room, busy, size_before,
       raw_wish, because, decided_by::text, slack_seconds, limited_by, desired, hired, taken_back, retired, candidate::text
from {schema}.scaling_journal
where at >= coalesce(%(first)s::timestamptz, '-infinity') and until >= coalesce(%(since)s::timestamptz, '-infinity')
  and at <= coalesce(%(until)s::timestamptz, 'infinity')
order by at desc, node_id limit %(count)s

-- forget_journal: deletes runs that ended before this, the oldest first
delete from {schema}.scaling_journal where (at, node_id) in (
    select at, node_id from {schema}.scaling_journal
    where at < clock_timestamp() - make_interval(secs => %(age_seconds)s)
      and until < clock_timestamp() - make_interval(secs => %(age_seconds)s)
    order by at limit %(batch)s for update skip locked)

-- write_hour: adds an hour, if nobody has compared it
insert into {schema}.compared_hours (at, seconds, attempts, skipped, was, present, candidate)
values (%(at)s::timestamptz, %(seconds)s, %(attempts)s, %(skipped)s, %(was)s::jsonb, %(present)s::jsonb,
        %(candidate)s::jsonb)
on conflict (at) do nothing

-- read_hours: the newest hours that touch a stretch of time, the newest first
select at, seconds, attempts, skipped, was::text, present::text, candidate::text
from {schema}.compared_hours
where at > coalesce(%(first)s::timestamptz, '-infinity') and at <= coalesce(%(until)s::timestamptz, 'infinity')
order by at desc limit %(count)s

-- forget_hours: deletes hours that ended before this, the oldest first
delete from {schema}.compared_hours where at in (
    select at from {schema}.compared_hours
    where at < clock_timestamp() - make_interval(hours => 1, secs => %(age_seconds)s)
    order by at limit %(batch)s for update skip locked)
