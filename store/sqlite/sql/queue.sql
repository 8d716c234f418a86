-- The queue as a whole: what is due, when the next job will be, counts, and a screen of jobs.

-- observe: how many jobs of one priority are due, counted up to :count
select count(*) from (
  select 1 from job_rows
  where state = 'queued' and parked = 0 and behind = 0 and priority = :priority and run_at <= :now
  limit :count
)

-- line: the first :count jobs of one priority that are due by :until, in the order of claims
select id, kind, run_at from job_rows
where state = 'queued' and parked = 0 and behind = 0 and priority = :priority and run_at <= :until
order by run_at, id
limit :count

-- others: what room the nodes but :me have, and those of them before it by id; and how much of it without those who are idle
with room as (
  select
    max(0, max_count - busy) as free,
    max(0, max_count - busy - idle) as unhired,
    id < :me as is_before
  from nodes
  where id <> :me and phase = 'running' and heartbeat_at > :now - :pauses * pause_seconds
)
select
  coalesce(sum(free), 0),
  coalesce(sum(free) filter (where is_before), 0),
  coalesce(sum(unhired), 0),
  coalesce(sum(unhired) filter (where is_before), 0)
from room

-- next_due: when the next queued job that is not yet due becomes due; one probe a priority
with recursive {priority_walk}
select min((
  select min(job_rows.run_at) from job_rows
  where state = 'queued' and parked = 0 and behind = 0 and job_rows.priority = walk.priority and job_rows.run_at > :now
))
from walk
where walk.priority is not null

-- not_yet_due: how many queued jobs are not yet due, counted up to :count in each priority
with recursive {priority_walk}
select coalesce(sum((
  select count(*) from (
    select 1 from job_rows
    where state = 'queued' and parked = 0 and behind = 0 and job_rows.priority = walk.priority and job_rows.run_at > :now
    limit :count
  )
)), 0)
from walk
where walk.priority is not null

-- due_kinds: how many of the first :count due jobs of one priority are of each kind
select kind, count(*) from (
  select kind from job_rows
  where state = 'queued' and parked = 0 and behind = 0 and priority = :priority and run_at <= :now
  order by run_at, id limit :count
) group by kind

-- later_kinds: how many of the first :count jobs of one priority that are not yet due are of each kind
select kind, count(*) from (
  select kind from job_rows
  where state = 'queued' and parked = 0 and behind = 0 and priority = :priority and run_at > :now
  order by run_at, id limit :count
) group by kind

-- waiting_priorities: the priorities that have claimable jobs, due or not, highest first
with recursive {priority_walk}
select priority from walk where priority is not null

-- counts: jobs by state, and how many were ever enqueued
select name, number from job_counts

-- count_parked: how many jobs wait for their kind's cap, counted up to :count
select count(*) from (select 1 from job_rows where parked = 1 limit :count)

-- count_behind: how many jobs stand behind the holders of their targets, counted up to :count
select count(*) from (select 1 from job_rows where behind = 1 limit :count)

-- count_halted: targets that a paused or failed job halts, up to :count; from one to the next along job_rows_halting
with recursive halted (target, number) as (
  select * from (
    select target, 1 from job_rows
    where target is not null and (state = 'paused' or (state = 'failed' and cleared_at is null))
    order by target limit 1
  )
  union all
  select (
    select job.target from job_rows job
    where job.target > halted.target
      and job.target is not null and (job.state = 'paused' or (job.state = 'failed' and job.cleared_at is null))
    order by job.target limit 1
  ), number + 1
  from halted where halted.target is not null and number < :count
)
select count(target) from halted

-- overview: jobs of one sort for a screen, the first :bound that fit among the first :span; {which} and {order} are written out, so
-- that a partial index serves
select
  id, kind, state, target, priority, attempt, max_attempts, forgiven, created_at, run_at, started_at, finished_at,
  node, worker, request, progress, substr(progress_note, 1, :note), substr(error, 1, :text),
  substr(reason, 1, :note), parked, behind
from (select * from job_rows where {which} order by {order} limit :span)
where {shown} and (:kind is null or kind = :kind) and (:target is null or target = :target)
order by {order}
limit :bound

-- halted_targets: the targets that a paused or failed job halts, looking at :bound such jobs
select distinct target from (
  select target from job_rows
  where target is not null and (state = 'paused' or (state = 'failed' and cleared_at is null))
  order by target, id
  limit :bound
) order by target

-- oldest_in_hand: the first :bound jobs in hand: when each started, and when its lease ends
select id, kind, started_at, lease_expires_at from job_rows
where state = 'assigned' or state = 'running'
order by id
limit :bound

-- failed_kinds: the kinds of which jobs have failed, up to :count; from one to the next along job_rows_ended
with recursive failed (kind, number) as (
  select * from (
    select kind, 1 from job_rows
    where state = 'failed' and stale_at is null and (state <> 'failed' or target is null or cleared_at is not null)
    order by kind limit 1
  )
  union all
  select (
    select job.kind from job_rows job
    where job.state = 'failed' and job.stale_at is null
      and (job.state <> 'failed' or job.target is null or job.cleared_at is not null) and job.kind > failed.kind
    order by job.kind limit 1
  ), number + 1
  from failed where failed.kind is not null and number < :count
)
select kind from failed where kind is not null

-- last_ends: of the latest :count jobs of a kind that ended after :since, how many failed and were not cleared, and how many there
-- are
select coalesce(sum(failed), 0), count(*) from (
  select failed from (
    select * from (
      select 1 as failed, finished_at from job_rows
      where state = 'failed' and kind = :kind and finished_at > :since and stale_at is null
        and (state <> 'failed' or target is null or cleared_at is not null) and cleared_at is null
      order by finished_at desc limit :count
    )
    union all
    select * from (
      select 0, finished_at from job_rows
      where state = 'succeeded' and kind = :kind and finished_at > :since and stale_at is null
        and (state <> 'failed' or target is null or cleared_at is not null)
      order by finished_at desc limit :count
    )
  )
  order by finished_at desc limit :count
)

-- audit_rows: the next :count jobs behind an id, as far as events tell of them
select id, state, attempt from job_rows where id > :after order by id limit :count

-- audit_tally: counts the rows of the table by state
select state, count(*) from job_rows group by state
