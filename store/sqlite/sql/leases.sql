-- Leases: what their holders write, and how they end.

-- held: a job that is leased under :token, as it stands before something is written about it
select id, kind, target, attempt, state, node, worker, request, webhook
from job_rows
where id = :id and claim_token = :token and state in ('assigned', 'running')

-- held_many: of the jobs in :ids (JSON) those that are leased under their token, as they stand before something is written
-- about them: a JSON list of id, node of one that has not started yet, webhook
select cast(json_group_array(json_array(id, case when state = 'assigned' then node end, webhook)) as blob)
from (select value as ended_id, substr(:tokens, 1 + 16 * key, 16) as token from json_each(:ids)) as ended
cross join job_rows on id = ended_id
where claim_token = token and +state in ('assigned', 'running')

-- move_leases: the wall clock was set by so much: what is left of each lease stays
update job_rows set lease_expires_at = lease_expires_at + :by, heartbeat_at = heartbeat_at + :by
where state = 'assigned' or state = 'running'

-- renew: extends one lease that still stands, if :lease_expires_at says so, and marks the job as running once it has started
update job_rows
set lease_expires_at = coalesce(:lease_expires_at, lease_expires_at),
  heartbeat_at = case when :lease_expires_at is null then heartbeat_at else :now end,
  state = case when :started_at is null then state else 'running' end,
  started_at = coalesce(started_at, :started_at), worker = coalesce(:worker, worker)
where id = :id and claim_token = :token and state in ('assigned', 'running')
  and (:lease_expires_at is null or lease_expires_at > :now)

-- mark_running: an attempt has begun; only while its job is leased under :token
update job_rows
set state = 'running', started_at = coalesce(started_at, :started_at), worker = coalesce(:worker, worker),
  progress = max(coalesce(progress, 0), :percent)
where id = :id and claim_token = :token and state in ('assigned', 'running')

-- note_progress: writes one job's progress and what it has spent; only while it is leased under :token
-- A note that was overtaken by the end of its phase changes nothing.
update job_rows
set progress = coalesce(:percent, progress),
  progress_note = case when :percent is null then progress_note else :note end,
  spent = coalesce(:spent, spent), changed_at = :now
where id = :id and claim_token = :token and state in ('assigned', 'running')
  and (:phase is null or :percent >= coalesce(progress, 0))

-- note_log: writes a part of one job's log, in place of what is there of it; only while it is leased under :token
insert into live_logs (job_id, token, first, last, words)
select id, :token, :first, :last, :text from job_rows
where id = :id and claim_token = :token and state in ('assigned', 'running')
on conflict (job_id, token, first) do update set last = excluded.last, words = excluded.words

-- drop_log_parts: parts that are no longer kept, and what another claim of the job has left
delete from live_logs where job_id = :id and (token <> :token or last <= :floor)

-- live_log: the parts of the log of one attempt in hand, those that end behind :line
select first, words from live_logs where job_id = :id and token = :token and last > :line order by first

-- forget_log: deletes what was noted of the log of an attempt that ends in this transaction
delete from live_logs where job_id = :id and token = :token

-- record_attempt: puts the attempt that ends now into the history; only while its job is leased under :token
insert into attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error, log)
select id, attempt, node, coalesce(:worker, worker), coalesce(:started_at, started_at),
  :finished_at, :outcome, :error, :log
from job_rows
where id = :id and claim_token = :token and state in ('assigned', 'running')

-- part end_of_lease: what an attempt leaves whichever way it ends; only while its job is leased under :token
worker = coalesce(:worker, worker), started_at = coalesce(:started_at, started_at),
  finished_at = :finished_at,
  progress = coalesce(:percent, progress),
  progress_note = case when :percent is null then progress_note else :note end,
  log = :log, spent = coalesce(:spent, spent), request = null, requested_at = null,
  lease_expires_at = null, heartbeat_at = null
where id = :id and claim_token = :token and state in ('assigned', 'running')
returning run_at

-- requeue: gives a job back to the queue, its attempt being recorded; only while it is leased under :token
update job_rows
set state = 'queued', run_at = coalesce(:run_at, run_at), result = :result,
  error = coalesce(:error, error), reason = :reason, last_outcome = null,
  forgiven = forgiven + :forgive, max_attempts = max_attempts + :forgive,
  {end_of_lease}

-- settle: ends a job or pauses it; only while it is leased under :token, which stays for those who ask whether it was written
update job_rows
set state = :state, result = :result, error = :error, reason = :reason, last_outcome = :outcome,
  forgiven = forgiven + :forgive, max_attempts = max_attempts + :forgive,
  {end_of_lease}

-- settle_plain: ends the jobs in :ids (JSON) as succeeded; only those that are leased under their token, which stays
-- What belongs to a job is cut out of columns of one width: that costs less than a JSON list for each.
update job_rows
set state = 'succeeded', result = ended.result, error = null, reason = null, last_outcome = 'succeeded',
  worker = ended.worker, started_at = ended.started_at, finished_at = ended.finished_at,
  log = null, request = null, requested_at = null, lease_expires_at = null, heartbeat_at = null
from (
  select value as id, substr(:tokens, 1 + 16 * key, 16) as token,
    cast(substr(:workers, 1 + 20 * key, 20) as integer) as worker,
    cast(substr(:starts, 1 + 20 * key, 20) as integer) as started_at,
    cast(substr(:ends, 1 + 20 * key, 20) as integer) as finished_at,
    case when cast(substr(:sizes, 1 + 20 * key, 20) as integer) >= 0 then cast(substr(
      :results,
      1 + cast(substr(:places, 1 + 20 * key, 20) as integer),
      cast(substr(:sizes, 1 + 20 * key, 20) as integer)
    ) as text) end as result
  from json_each(:ids)
) as ended
where job_rows.id = ended.id and job_rows.claim_token = ended.token
  and +job_rows.state in ('assigned', 'running')

-- settled_already: whether this very settlement has been written
select exists (
  select 1 from job_rows
  where id = :id and claim_token = :token and attempt = :attempt
    and (
      (state = :state and last_outcome = :outcome)
      or (state in ('canceled', 'paused') and :state in ('queued', 'paused')
        and last_outcome <> 'lost')
    )
) or exists (
  select 1 from attempts where job_id = :id and attempt = :attempt
    and (outcome = :outcome or (outcome = 'failed' and :outcome = 'retrying'))
)

-- reap: leases that have run out, the lowest ids first, at most :count
select id, kind, attempt, max_attempts, forgiven, node, lease_expires_at, claim_token, request, target, started_at
from job_rows
where (state = 'assigned' or state = 'running') and lease_expires_at <= :now
order by id
limit :count

-- expire_all: every lease has run out as of now; for a daemon that starts alone on its file
update job_rows set lease_expires_at = min(lease_expires_at, :now)
where state = 'assigned' or state = 'running'
