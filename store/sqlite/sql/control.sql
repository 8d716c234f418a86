-- control: moves a job that nobody holds; :effect is its new state
update job_rows
set state = :effect,
  run_at = case when :action = 'resume' then :now else run_at end,
  finished_at = case when :effect = 'canceled' then :now else finished_at end,
  cleared_at = case when :action = 'clear' then :now end,
  reason = :reason,
  forgiven = case when :action = 'resume' then attempt else forgiven end,
  max_attempts = case when :action = 'resume' then max_attempts + attempt - forgiven
    else max_attempts end,
  last_outcome = null, log = null, stale_at = null, parked = 0, behind = 0
where id = :id
