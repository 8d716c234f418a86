-- The past of the queue.

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
