-- settle_webhooks: writes what came of one try, fenced by its token; returns what is to be told of it
update webhooks
set state = :state, due_at = coalesce(:due_at, due_at), ended_at = :ended_at, status = :status, error = :error,
  claim_token = null, claimed_until = null
where id = :id and claim_token = :token and state = 'waiting'
returning job_id, url, tries
