-- The decisions of the supervisors, runs of like ones as one row.

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
