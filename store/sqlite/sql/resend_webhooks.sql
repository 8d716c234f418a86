-- resend_webhooks: makes one message due now, with a fresh start, unless somebody is sending it just now
update webhooks
set state = 'waiting', tries = 0, created_at = :now, due_at = :now, ended_at = null, status = null, error = null,
  claim_token = null, claimed_until = null
where id = :id and (claim_token is null or claimed_until <= :now)
