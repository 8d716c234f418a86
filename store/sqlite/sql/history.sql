-- The past: of the queue, in steps, and of decisions, runs of like ones as one row, with the hours beside the model.

-- kind_row: what became of jobs of a kind within a step, as far as it was told
select kind, succeeded, failed, canceled, retried, waits, runs from history_kinds
where step_seconds = :step and at_seconds = :at and kind = :kind

-- put_kind_row: says anew what became of jobs of a kind within a step
insert or replace into history_kinds (step_seconds, at_seconds, kind, succeeded, failed, canceled, retried, waits, runs)
values (:step, :at, :kind, :succeeded, :failed, :canceled, :retried, :waits, :runs)

-- add_mark: notes what happened once
insert or ignore into history_marks (at_seconds, what, node, said) values (:at, :what, :node, :said)

-- look_history: the highest that were seen of the queue within a step
insert into history_queue (step_seconds, at_seconds, depth, oldest_seconds, crew, wish, max_count, stands_seconds)
values (:step, :at, :depth, :oldest_seconds, :crew, :wish, :max_count, :stands_seconds)
on conflict (step_seconds, at_seconds) do update
set depth = max(depth, excluded.depth), oldest_seconds = max(oldest_seconds, excluded.oldest_seconds),
  crew = max(crew, excluded.crew), wish = max(wish, excluded.wish), max_count = max(max_count, excluded.max_count),
  stands_seconds = excluded.stands_seconds

-- queue_history: what was seen of the queue, the newest first
select at_seconds, depth, oldest_seconds, crew, wish, max_count, stands_seconds from history_queue
where step_seconds = :step and at_seconds >= :since and at_seconds < :until order by at_seconds desc limit :most

-- kind_history: what became of jobs, the newest first
select at_seconds, kind, succeeded, failed, canceled, retried, waits, runs from history_kinds
where step_seconds = :step and at_seconds >= :since and at_seconds < :until and (:by_kind or kind = '')
order by at_seconds desc, kind desc limit :most

-- mark_history: what happened once, the newest first
select at_seconds, what, node, said from history_marks
where at_seconds >= :since and at_seconds < :until order by at_seconds desc limit :most

-- trim_queue_history: deletes what was seen of the queue too long ago
delete from history_queue where (step_seconds, at_seconds) in (
  select step_seconds, at_seconds from history_queue
  where step_seconds = :step and at_seconds < :until order by at_seconds limit :batch
)

-- trim_kind_history: deletes what became of jobs too long ago
delete from history_kinds where (step_seconds, at_seconds, kind) in (
  select step_seconds, at_seconds, kind from history_kinds
  where step_seconds = :step and at_seconds < :until order by at_seconds, kind limit :batch
)

-- trim_marks: deletes what happened too long ago
delete from history_marks where (at_seconds, what, node) in (
  select at_seconds, what, node from history_marks where at_seconds < :until order by at_seconds limit :batch
)

-- write_journal: adds runs, and lets those grow that are known; the same ones again change nothing
insert into scaling_journal
  (at, node_id, node, until, ticks, policy, default_count, max_count, due, others_free, share, room, busy, size_before,
  raw_wish, because, decided_by, slack_seconds, limited_by, desired, hired, taken_back, retired, candidate)
select json_extract(value, '$.at'), :node_id, :node, json_extract(value, '$.until'), json_extract(value, '$.ticks'),
  json_extract(value, '$.policy'), json_extract(value, '$.default_count'), json_extract(value, '$.max_count'),
  json_extract(value, '$.due'), json_extract(value, '$.others_free'), json_extract(value, '$.share'),
  json_extract(value, '$.room'), json_extract(value, '$.busy'), json_extract(value, '$.size_before'),
  json_extract(value, '$.raw_wish'), json_extract(value, '$.because'), json_extract(value, '$.decided_by'),
  json_extract(value, '$.slack_seconds'), json_extract(value, '$.limited_by'), json_extract(value, '$.desired'),
  json_extract(value, '$.hired'), json_extract(value, '$.taken_back'), json_extract(value, '$.retired'),
  json_extract(value, '$.candidate')
from json_each(:runs) where true
on conflict (at, node_id) do update set until = excluded.until, ticks = excluded.ticks
where excluded.ticks > scaling_journal.ticks

-- read_journal: the newest runs that touch a stretch of time, the newest first
select node_id, node, at, until, ticks, policy, default_count, max_count, due, others_free, share, room, busy, size_before,
  raw_wish, because, decided_by, slack_seconds, limited_by, desired, hired, taken_back, retired, candidate
from scaling_journal
where at >= coalesce(:first, -9223372036854775808) and until >= coalesce(:since, -9223372036854775808)
  and at <= coalesce(:until, 9223372036854775807)
order by at desc, node_id limit :count

-- forget_journal: deletes runs that ended before this, the oldest first
delete from scaling_journal where (at, node_id) in (
  select at, node_id from scaling_journal where at < :before and until < :before order by at limit :batch)

-- write_hour: adds an hour, if nobody has compared it
insert or ignore into compared_hours (at, seconds, attempts, skipped, was, present, candidate)
values (:at, :seconds, :attempts, :skipped, :was, :present, :candidate)

-- read_hours: the newest hours that touch a stretch of time, the newest first
select at, seconds, attempts, skipped, was, present, candidate from compared_hours
where at > coalesce(:first, -9223372036854775808) and at <= coalesce(:until, 9223372036854775807)
order by at desc limit :count

-- forget_hours: deletes hours that ended before this, the oldest first
delete from compared_hours where at in (
  select at from compared_hours where at < :before - 3600000000 order by at limit :batch)
