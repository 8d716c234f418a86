-- Phases of jobs, and what nodes declare of kinds.

-- place_phase: a phase has this place; one that is not known yet is to come, and so is one that failed before
insert into job_phases (job_id, place, name) values (:job_id, :place, :name)
on conflict (job_id, name) do update set place = excluded.place,
  state = case job_phases.state when 'succeeded' then 'succeeded' else 'pending' end

-- begun_phases: what is stored of the phases of one job
select name, state, result from job_phases where job_id = :job_id

-- begin_phase: a phase runs; it is counted once in each attempt
update job_phases
set state = 'running', finished_at = null,
  attempts = attempts + (in_attempt is not :attempt),
  started_at = case when in_attempt is :attempt then started_at else :now end,
  progress = case when in_attempt is :attempt then progress end,
  in_attempt = :attempt
where job_id = :job_id and name = :name and state <> 'succeeded'

-- end_phase: a phase has ended, or was interrupted; never one that is finished
update job_phases
set state = :state, result = :result, finished_at = case when :state <> 'running' then :now end,
  progress = case :state when 'succeeded' then 100 else coalesce(:progress, progress) end
where job_id = :job_id and name = :name and state <> 'succeeded'

-- note_phase: how far the phase has come that runs
update job_phases set progress = :phase_percent
where job_id = :id and name = :phase and state = 'running'

-- forget_phase: the kind of this job has no such phase any more
delete from job_phases where job_id = :job_id and name = :name

-- share_of_phases: how far a job has come whose phase is in between, in percent
select 100.0 * sum(state = 'succeeded') / count(*) from job_phases where job_id = :job_id

-- declare_kinds: what nodes say of a kind to those who have no catalog; writes nothing where that is known
insert into kind_rules (kind, phases, webhook, priority) values (:kind, :phases, :webhook, :priority)
on conflict (kind) do update
set phases = excluded.phases, webhook = excluded.webhook, priority = excluded.priority
where kind_rules.phases <> excluded.phases or kind_rules.webhook is not excluded.webhook
  or kind_rules.priority <> excluded.priority

-- forget_kind: nothing is to be said of this kind any more
delete from kind_rules where kind = :kind
