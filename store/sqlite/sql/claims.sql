-- Claims: which jobs are due, and taking them.

-- part priority_walk: the priorities that have queued jobs, highest first; one probe each
walk (priority) as (
  select max(priority) from job_rows where state = 'queued' and parked = 0 and behind = 0
  union all
  select (select max(job_rows.priority) from job_rows
          where state = 'queued' and parked = 0 and behind = 0 and job_rows.priority < walk.priority)
  from walk
  where walk.priority is not null
)

-- due_priorities: the priorities that have due jobs, highest first, each with its earliest due time; one probe a priority
with recursive {priority_walk},
heads (priority, run_at) as (
  select
    walk.priority,
    (select min(job_rows.run_at) from job_rows
     where state = 'queued' and parked = 0 and behind = 0 and job_rows.priority = walk.priority)
  from walk
  where walk.priority is not null
)
select priority, run_at from heads where run_at <= :now

-- due_jobs: the first :count due jobs of one priority, in claim order, as a JSON list; without payloads that are longer than :whole
select cast(json_group_array(json_array(
  id, kind, case when length(payload) <= :whole then payload end, attempt, max_attempts, forgiven, run_at, spent,
  priority, target, schedule, scheduled_for, created_at
)) as blob)
from (
  select
    id, kind, payload, attempt, max_attempts, forgiven, run_at, spent, priority, target, schedule, scheduled_for, created_at
  from job_rows
  where state = 'queued' and parked = 0 and behind = 0 and priority = :priority and run_at <= :now
  order by run_at, id
  limit :count
)

-- payload: that of one job
select payload from job_rows where id = :id

-- leased_kinds: how many jobs of each kind are in hand
select kind, count(*) from job_rows
where state = 'assigned' or state = 'running'
group by kind

-- claim: takes the queued jobs in :ids (JSON) under a lease and counts the attempts; the first ones for :workers (JSON), started at once
update job_rows
set state = case when taken.worker is null then 'assigned' else 'running' end,
  attempt = attempt + 1, claim_token = :token, node = :node, worker = taken.worker,
  lease_expires_at = :lease_expires_at, heartbeat_at = :now,
  started_at = case when taken.worker is null then null else :now end,
  finished_at = null, result = null, last_outcome = null,
  log = null, progress = null, progress_note = null
from (
  select value as id, case when key < :seats then json_extract(:workers, '$[' || key || ']') end as worker
  from json_each(:ids)
) as taken
where job_rows.id = taken.id and +job_rows.state = 'queued'

-- claims_under: the jobs leased under this token, in claim order
select id, kind, payload, attempt, max_attempts, forgiven, heartbeat_at - run_at, worker, spent, target, schedule, scheduled_for,
  max(heartbeat_at, created_at)
from job_rows
where (state = 'assigned' or state = 'running') and claim_token = :token
order by priority desc, run_at, id

-- park: takes one queued job, of whose kind as many run as may, out of the claim's way
update job_rows set parked = 1 where id = :id and state = 'queued'

-- unpark: gives the first :count parked jobs of one kind back to the claim
update job_rows set parked = 0
where id in (
  select id from job_rows
  where parked = 1 and kind = :kind
  order by priority desc, run_at, id
  limit :count
)

-- parked_kinds: the kinds that have parked jobs; one probe each
with recursive walk (kind) as (
  select min(kind) from job_rows where parked = 1
  union all
  select (select min(job_rows.kind) from job_rows
          where parked = 1 and job_rows.kind > walk.kind)
  from walk
  where walk.kind is not null
)
select kind from walk where kind is not null
