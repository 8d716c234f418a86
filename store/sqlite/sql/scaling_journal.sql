-- The decisions of the supervisor, runs of like ones as one row.

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
