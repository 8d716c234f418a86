-- begin_phase: a phase runs; it is counted once in each attempt
update job_phases
set state = 'running', finished_at = null,
  attempts = attempts + (in_attempt is not :attempt),
  started_at = case when in_attempt is :attempt then started_at else :now end,
  progress = case when in_attempt is :attempt then progress end,
  in_attempt = :attempt
where job_id = :job_id and name = :name and state <> 'succeeded'
