-- Claims: which jobs are due, and taking them; and targets: who has one, who stands behind, and whose turn it is.

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

-- next_in_line: the first :count jobs in claim order that are due, or never will be
select id from job_rows
where state = 'queued' and parked = 0 and behind = 0 and (run_at <= :now or run_at > :last)
order by priority desc, run_at, id
limit :count

-- row: all of one job
select * from job_rows where id = :id

-- claimed_one: what a settlement says of a job beside its end
select kind, target, attempt from job_rows where id = :id

-- mend: puts these values into a row; {columns} are written out
update job_rows set {columns} where id = :id

-- payload: that of one job
select payload from job_rows where id = :id

-- leased_kinds: how many jobs of each kind are in hand
select kind, count(*) from job_rows
where state = 'assigned' or state = 'running'
group by kind

-- claim: takes the queued jobs in :ids (JSON) under a lease and counts the attempts; the first ones for :workers (JSON), started at
-- once
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
  max(heartbeat_at, case when created_at < heartbeat_at + :made_ahead then created_at else heartbeat_at end)
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

-- target: who has a target, or halts it while nobody has it; 1 = without having been claimed for it
select job_id, reserved from target_holders where target = :target
union all
select * from (
  select id, 1 from job_rows
  where target = :target and (state = 'paused' or (state = 'failed' and cleared_at is null))
    and not exists (select 1 from target_holders where target = :target)
  order by id limit 1
)

-- target_holder: the job that has this target; 1 = it has not been claimed for it
select job_id, reserved from target_holders where target = :target

-- take_target: from now on this job has the target
insert into target_holders (target, job_id, reserved) values (:target, :id, :reserved)
on conflict (target) do update set job_id = excluded.job_id, reserved = excluded.reserved

-- free_target: nobody has this target
delete from target_holders where target = :target

-- leased_of_target: the job of this target that is in hand; there is at most one
select id from job_rows where target = :target and state in ('assigned', 'running')

-- halting: the first job that halts this target
select id from job_rows
where target = :target and (state = 'paused' or (state = 'failed' and cleared_at is null))
order by id
limit 1

-- behind: the first :count jobs that stand behind the holder of this target, in claim order
select id, priority, run_at from job_rows
where behind = 1 and target = :target
order by priority desc, run_at, id
limit :count

-- stand_behind: takes the queued jobs in :ids (JSON), whose targets others have, out of the claim's way
update job_rows set behind = 1, parked = 0
where id in (select value from json_each(:ids)) and +state = 'queued'

-- step_forward: gives one job that stood behind back to the claim
update job_rows set behind = 0 where id = :id

-- turn_of: how one job of a target stands, and its place in claim order
select state, cleared_at, priority, run_at from job_rows where id = :id and target = :target

-- job_named: the kind and the target of a job
select kind, target from job_rows where id = :id
