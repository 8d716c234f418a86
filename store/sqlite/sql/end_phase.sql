-- end_phase: a phase has ended, or was interrupted; never one that is finished
update job_phases
set state = :state, result = :result, finished_at = case when :state <> 'running' then :now end,
  progress = case :state when 'succeeded' then 100 else coalesce(:progress, progress) end
where job_id = :job_id and name = :name and state <> 'succeeded'
