-- Jobs: making them, reading them, looking some out, and acting on them; and on the queue.

-- enqueue: one new job, :state; due at :run_at; :behind = 1 if another has its target. Gives its id and its priority
insert into job_rows (kind, payload, priority, max_attempts, created_at, run_at, state, dedup_key, target, behind, traceparent,
    webhook)
values (:kind, :payload, coalesce(:priority, (select priority from kind_rules where kind = :kind), 0), :max_attempts, :now, :run_at,
    :state, :dedup_key, :target, :behind, :traceparent, :webhook)
returning id, priority

-- priority_of_kind: that of jobs of a kind that have none of their own
select coalesce((select priority from kind_rules where kind = :kind), 0)

-- key_holder: the job that holds a key; none if its time is over, or its job has ended or is gone
select job_id from dedup_keys
where key = :key and (until > :now or (until is null and exists (
  select 1 from job_rows
  where job_rows.id = dedup_keys.job_id and state not in ('succeeded', 'failed', 'canceled')
)))

-- take_key: a job holds this key from now on
insert into dedup_keys (key, job_id, until) values (:key, :job_id, :until)
on conflict (key) do update set job_id = excluded.job_id, until = excluded.until

-- look_through: of the next :span jobs by their ids downwards those that fit, and the last one; each with its number among them.
-- {source}, {which}: which jobs and by which index, written out so that a partial one serves; {states}: those that fit
select id, fits, nth, created_at from (
  select id, fits, created_at, row_number() over () as nth from (
    select id, created_at, {states} and (:kind is null or kind = :kind) and (:target is null or target = :target)
      and (:key is null or dedup_key = :key)
      and (not :by_end or state in ('succeeded', 'failed', 'canceled'))
      and (:since is null or iif(:by_end, finished_at, created_at) >= :since)
      and (:until is null or iif(:by_end, finished_at, created_at) < :until)
      and (:error is null or error is not null and instr(lower(case when json_valid(error)
        then coalesce(json_extract(error, '$.type') || ': ', '') || coalesce(json_extract(error, '$.message'), error)
        else error end), lower(:error)) > 0)
      as fits
    from {source}
    where {which} and id < :before and id >= :first
    order by id desc
    limit :span
  )
)
where fits or nth = :span

-- jobs_of: the jobs with these ids, newest first; :ids is a JSON array; {columns} are those of a `JobRecord`
select {columns} from job_rows where id in (select value from json_each(:ids)) order by id desc

-- count_queued: as the counters have it
select number from job_counts where name = 'queued'

-- ids_in_use: the first id and the last one
select min(id), max(id) from job_rows

-- made_before: the job with the greatest id up to this one, and when it was made
select id, created_at from job_rows where id <= :id order by id desc limit 1

-- key_of_job: the job that took this key last, if that is known
select job_id from dedup_keys where key = :key

-- traceparents: of those of these jobs that have one; :ids is a JSON array
select id, traceparent from job_rows where id in (select value from json_each(:ids)) and traceparent is not null

-- attempts: the earlier attempts of one job, in order
select attempt, node, worker, started_at, finished_at, outcome, error, log
from attempts
where job_id = :job_id
order by attempt

-- log_head: where one job stands, and whose its log is
select state, attempt, claim_token, last_outcome, lease_expires_at is not null, case when lease_expires_at is null then log end
from job_rows where id = :id

-- past_logs: what the earlier attempts of one job from :attempt on have logged, at most :count
select attempt, log from attempts
where job_id = :id and attempt >= :attempt and log is not null
order by attempt limit :count

-- phases: the phases of one job, in order; where it never started, what is said of its kind
select name, state, progress, result, attempts, started_at, finished_at from (
  select place, name, state, progress, result, attempts, started_at, finished_at
  from job_phases where job_id = :job_id
  union all
  select said.key, said.value, 'pending', null, null, 0, null, null
  from job_rows job join kind_rules rule on rule.kind = job.kind, json_each(rule.phases) said
  where job.id = :job_id and not exists (select 1 from job_phases where job_id = :job_id)
)
order by place

-- webhooks_of: where the end of a job is told, and how that went at the last one
select coalesce(message.url, job.webhook, of_kind.webhook, of_all.webhook),
  case message.state when 'delivered' then message.ended_at end, coalesce(message.tries, 0)
from job_rows job
left join webhooks message on message.id = (
  select id from webhooks
  where job_id = job.id and type in ('job.succeeded', 'job.failed', 'job.canceled')
  order by id desc limit 1
)
left join kind_rules of_kind on of_kind.kind = job.kind
left join kind_rules of_all on of_all.kind = ''
where job.id = :job_id and coalesce(message.url, job.webhook, of_kind.webhook, of_all.webhook) is not null

-- select_jobs: the next jobs by id, with what decides whether they fit; {which} is written out, so that a partial index serves
select id, state, kind, target, priority, created_at, finished_at, cleared_at
from job_rows
where {which} and id > :after and id <= :until
order by id
limit :count

-- facts_of: what decides whether one job fits a selection
select id, state, kind, target, priority, created_at, finished_at, cleared_at
from job_rows
where id = :id

-- stand_of: one job before it is acted on
select state, request, target, kind, attempt, cleared_at, webhook from job_rows where id = :id

-- ask_holder: the holder of this job is to cancel or to pause it
update job_rows set request = :action, requested_at = :now where id = :id

-- keep_attempt: the attempt that ended last goes into the history, if it stands in the job's own row
insert into attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error, log)
select id, attempt, node, worker, started_at, finished_at, last_outcome, error, log
from job_rows
where id = :id and last_outcome is not null

-- control: moves a job that nobody holds; :effect is its new state
update job_rows
set state = :effect,
  run_at = case when :action <> 'resume' then run_at when exists (
      select 1 from attempts a where a.job_id = job_rows.id and a.attempt = job_rows.attempt and a.outcome = 'snoozed'
    ) then max(run_at, :now) else :now end,
  finished_at = case when :effect = 'canceled' then :now else finished_at end,
  cleared_at = case when :action = 'clear' then :now end,
  reason = :reason,
  forgiven = case when :action = 'resume' then attempt else forgiven end,
  max_attempts = case when :action = 'resume' then max_attempts + attempt - forgiven
    else max_attempts end,
  spent = case when :action <> 'resume' then spent end,
  last_outcome = null, log = null, stale_at = null, changed_at = :now, parked = 0, behind = 0
where id = :id

-- clear: notes that somebody has seen to this failed job
update job_rows set cleared_at = coalesce(cleared_at, :now) where id = :id

-- queue_state: since when the queue is paused, and by whom
select paused_at, paused_by from queue_state

-- pause_queue: from now on nothing is claimed; changes nothing if it was paused already
update queue_state set paused_at = :now, paused_by = :by where paused_at is null

-- declare_tenant: the name of the tenant whose store this is
update queue_state set tenant = :tenant where tenant <> :tenant

-- resume_queue: claims go on; changes nothing if the queue was not paused
update queue_state set paused_at = null, paused_by = null where paused_at is not null
