-- What decides whether a job can run now.

-- why_job: what the job's own row says of where it stands, how its last ended attempt ended, the queue's switch, and the time
select
  job.id, job.kind, job.state, job.priority, job.run_at, job.started_at, job.finished_at, job.attempt,
  job.node, job.worker, job.lease_expires_at, job.request, job.requested_at, job.reason, job.error,
  job.target, job.parked, job.cleared_at,
  (select outcome from attempts where job_id = job.id order by attempt desc limit 1),
  :now, queue_state.paused_at, queue_state.paused_by
from queue_state, job_rows as job
where job.id = :id

-- why_target: who keeps the job's target from it: its holder, and the first five jobs that halt it
with mine as (
  select id, target from job_rows where id = :id and target is not null
),
others (id) as (
  select target_holders.job_id from mine join target_holders on target_holders.target = mine.target
  union
  select id from (
    select halting.id from mine join job_rows as halting on halting.target = mine.target
    where halting.target is not null
      and (halting.state = 'paused' or (halting.state = 'failed' and halting.cleared_at is null))
      and halting.id <> mine.id
    order by halting.id limit 5
  )
)
select
  job.id, job.state,
  case when job.state in ('paused', 'failed') then job.finished_at else job.started_at end,
  job.run_at, job.reason,
  exists (select 1 from target_holders
          where target_holders.target = mine.target and target_holders.job_id = job.id)
from mine, others
join job_rows as job on job.id = others.id
where job.id <> mine.id
order by job.id

-- why_before: how many jobs stand before this one in its target, and how many of its kind are parked before it, each up to :bound
-- Two ranges of the index each: what stands after the job is not read.
with mine as materialized (
  select id, kind, target, priority, run_at from job_rows where id = :id
),
in_target as (
  select 1 from mine join job_rows as job on job.behind = 1 and job.target = mine.target
  where job.priority > mine.priority
  union all
  select 1 from mine join job_rows as job on job.behind = 1 and job.target = mine.target
  where job.priority = mine.priority and (job.run_at, job.id) < (mine.run_at, mine.id)
),
of_kind as (
  select 1 from mine join job_rows as job on job.parked = 1 and job.kind = mine.kind
  where job.priority > mine.priority
  union all
  select 1 from mine join job_rows as job on job.parked = 1 and job.kind = mine.kind
  where job.priority = mine.priority and (job.run_at, job.id) < (mine.run_at, mine.id)
)
select
  (select count(*) from (select 1 from in_target limit :bound)),
  (select count(*) from (select 1 from of_kind limit :bound))

-- why_line: the first :count claimable jobs of one priority: those without a target by kind, with how many stand before this job;
-- then the others one by one, in claim order, each with whoever has its target
with line as materialized (
  select id, kind, run_at, target from job_rows
  where state = 'queued' and parked = 0 and behind = 0 and priority = :priority and run_at <= :now
  order by run_at, id
  limit :count
)
select null, kind, null, null, count(*), max(id = :id),
  sum(:priority > :own_priority
    or (:priority = :own_priority and (run_at, id) < (:own_run_at, :id)))
from line where target is null
group by kind
union all
select * from (
  select line.id, line.kind, line.target, target_holders.job_id, 1, line.id = :id,
    :priority > :own_priority
      or (:priority = :own_priority and (line.run_at, line.id) < (:own_run_at, :id))
  from line left join target_holders on target_holders.target = line.target
  where line.target is not null
  order by line.run_at, line.id
)

-- why_leased: the jobs in hand, at most :bound, each with how long it has been running, and how many there are
select id, kind, node, worker, :now - started_at, count(*) over ()
from job_rows
where state = 'assigned' or state = 'running'
order by id
limit :bound
