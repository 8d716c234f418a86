-- spare_webhooks: what else waits for a receiver that is gone fails, but for what others hold; returns what is to be told
update webhooks
set state = 'failed', ended_at = :now, status = null, error = :error
where id in (
  select id from webhooks where url = :url and state = 'waiting' and claim_token is null limit 10000
)
returning job_id, url, tries
