-- Targets: who has one, who stands behind, and whose turn it is.

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
