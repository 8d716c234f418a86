-- Nodes, duties and schedules: what nodes say of themselves, and what one node does for all.

-- beat: a node says that it lives, and how it is; without kinds those it named last stay
insert into nodes
  (id, name, version, started_at, heartbeat_at, phase, idle, busy, retiring, default_count, max_count,
  pause_seconds, config_generation, config_hash, load, wish, kinds)
values
  (:id, :name, :version, :started_at, :now, :phase, :idle, :busy, :retiring, :default_count, :max_count,
  :pause_seconds, :config_generation, :config_hash, :load, :wish, :kinds)
on conflict (id) do update
set heartbeat_at = excluded.heartbeat_at, phase = excluded.phase, idle = excluded.idle,
  busy = excluded.busy, retiring = excluded.retiring, default_count = excluded.default_count,
  max_count = excluded.max_count, pause_seconds = excluded.pause_seconds,
  config_generation = excluded.config_generation, config_hash = excluded.config_hash, load = excluded.load,
  wish = excluded.wish, kinds = coalesce(excluded.kinds, nodes.kinds)

-- leave: a node ends as it should, and is forgotten
delete from nodes where id = :id

-- nodes: what the nodes have said of themselves, the oldest first, each with the age of its last sign of life; at most :bound
select id, name, version, started_at, heartbeat_at, phase, idle, busy, retiring, default_count,
  max_count, kinds, :now - heartbeat_at, pause_seconds, config_generation, config_hash, load, wish
from nodes
where :young is null or heartbeat_at > :now - :young
order by started_at, id
limit :bound

-- live_nodes: how many nodes take jobs and have not been silent for too long
select count(*) from nodes where phase = 'running' and heartbeat_at > :now - :pauses * pause_seconds * 1e6

-- forget_nodes: nodes whose last sign of life is older than :before are forgotten
delete from nodes where heartbeat_at < :before

-- duties: all of them, as people see them
select duty, node, node_id, term, acquired_at, heartbeat_at, expires_at, last_run_at, runs, items, errors, last_error,
  hand_overs, run_seconds, running_since
from duties order by duty

-- held_duties: who has which duty until when
select duty, term, node_id, expires_at, hand_overs from duties

-- take_duty: takes a duty that nobody has, or whose lease has run out
insert into duties (duty, tenant, node, node_id, term, acquired_at, heartbeat_at, expires_at)
values (:duty, :tenant, :node, :node_id, :term, :now, :now, :expires_at)
on conflict (duty) do update
set tenant = excluded.tenant, node = excluded.node, term = excluded.term,
  hand_overs = hand_overs + (node_id is not excluded.node_id), node_id = excluded.node_id,
  acquired_at = excluded.acquired_at, heartbeat_at = excluded.heartbeat_at, expires_at = excluded.expires_at
where term is null or expires_at <= :now

-- renew_duty: extends the lease of a duty whose term still stands, and notes what was done
update duties
set heartbeat_at = :now, expires_at = :expires_at,
  last_run_at = case when :runs > 0 then :now else last_run_at end,
  runs = runs + :runs, items = items + :items, errors = errors + :errors, last_error = coalesce(:last_error, last_error),
  run_seconds = run_seconds + :run_seconds, running_since = :running_since
where duty = :duty and term = :term

-- release_duty: gives a duty up, fenced by its term
update duties
set term = null, expires_at = null,
  last_run_at = case when :runs > 0 then :now else last_run_at end,
  runs = runs + :runs, items = items + :items, errors = errors + :errors, last_error = coalesce(:last_error, last_error),
  run_seconds = run_seconds + :run_seconds, running_since = :running_since
where duty = :duty and term = :term

-- free_duties: whoever had one is dead
update duties set term = null, expires_at = null

-- begin_schedule: one that is new begins now
insert into schedules (name, last_slot) values (:name, :now) on conflict do nothing

-- know_schedule: where a schedule stands
select name, last_slot, last_fired_at, last_job_id,
  (select state from job_rows where id = last_job_id), fired, skipped, missed, paused_at
from schedules where name = :name

-- busy_schedule: whether the job of its last slot, or the one made last by hand, has not ended
select exists (
  select 1 from schedules join job_rows on job_rows.id in (last_job_id, slot_job_id)
  where name = :name and state not in ('succeeded', 'failed', 'canceled')
)

-- take_slot: slots only ever go forward, so whoever comes second finds it taken; without a slot none moves
update schedules set last_slot = coalesce(:slot, last_slot)
where name = :name and (:slot is null or last_slot < :slot and paused_at is null)

-- mark_scheduled: this job is of that schedule, and of this slot
update job_rows set schedule = :schedule, scheduled_for = :slot where id = :id

-- let_slots_go: sees to slots by leaving them out
update schedules set last_slot = :up_to, missed = missed + :count where name = :name and last_slot < :up_to

-- move_on: a job has come to its next phase; only while it is leased under :token
update job_rows
set progress = max(coalesce(progress, 0), :percent), progress_note = null, spent = coalesce(:spent, spent), changed_at = :now
where id = :id and claim_token = :token and state in ('assigned', 'running')

-- note_firing: a slot made this job, or none, since an earlier one was busy; or somebody made it by hand
update schedules
set last_job_id = coalesce(:job_id, last_job_id), last_fired_at = case when :job_id is null then last_fired_at else :now end,
  slot_job_id = case when :slot is null then slot_job_id else coalesce(:job_id, slot_job_id) end,
  fired = fired + (:job_id is not null), skipped = skipped + (:job_id is null)
where name = :name

-- pause_schedule: its slots are nobody's until it is resumed
update schedules set paused_at = :now where name = :name and paused_at is null

-- resume_schedule: its slots count again from now on
update schedules set paused_at = null, last_slot = max(last_slot, :now) where name = :name and paused_at is not null

-- rewind_schedule: begins anew where the clock was once further ahead than that
update schedules set last_slot = :now where name = :name and last_slot > :now + :ahead

-- move_duties: as move_leases, of the leases of duties
update duties set expires_at = expires_at + :by, heartbeat_at = heartbeat_at + :by where expires_at is not null
