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
