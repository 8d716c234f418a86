-- Messages to others: made with what they tell, then sent by whoever takes them.

-- call_out: the message of a job's end, if its own URL, its kind's or everybody's is known; failed at once where the receiver wants
-- nothing more
insert into webhooks (job_id, url, type, attempt, created_at, due_at, state, ended_at, error)
select :job_id, url, :type, :attempt, :now, :now,
  case when gone then 'failed' else 'waiting' end, case when gone then :now end, case when gone then :gone end
from (
  select url, exists (select 1 from webhooks_gone where webhooks_gone.url = wanted.url) as gone
  from (
    select coalesce(
      :url,
      (select webhook from kind_rules where kind = :kind),
      (select webhook from kind_rules where kind = '')
    ) as url
  ) as wanted
)
where url is not null
returning url, state

-- called_kinds: the kinds whose jobs' ends somebody wants to be told; '' stands for all
select kind from kind_rules where webhook is not null

-- hold_webhook: takes one message under a token and for a while, at whose end it is due again
update webhooks set claim_token = :token, tries = tries + 1, due_at = :until, claimed_until = :until where id = :id

-- take_webhooks: messages that are due, the longest due first; to be held, each
select id, 'msg_' || message_id, job_id, url, type, attempt, tries + 1, created_at, body
from webhooks
where state = 'waiting' and due_at <= :now
order by due_at, id
limit :count

-- settle_webhooks: writes what came of one try, fenced by its token; returns what is to be told of it
update webhooks
set state = :state, due_at = coalesce(:due_at, due_at), ended_at = :ended_at, status = :status, error = :error,
  claim_token = null, claimed_until = null
where id = :id and claim_token = :token and state = 'waiting'
returning job_id, url, tries

-- next_webhook: when the next message is due that nobody holds; null = there is none
select min(due_at) from webhooks where state = 'waiting'

-- message_waits: whether a message about this job is still to be sent
select 1 from webhooks where job_id = :id and state = 'waiting' limit 1

-- webhooks: messages newest first, filtered
select id, 'msg_' || message_id, job_id, url, type, state, tries, created_at, due_at, ended_at, status, error
from webhooks
where id < :before and (:job_id is null or job_id = :job_id) and (:state is null or state = :state)
  and (:url is null or url = :url)
order by id desc
limit :count

-- webhook_url: where a message is to go
select url from webhooks where id = :id

-- resend_webhooks: makes one message due now, with a fresh start, unless somebody is sending it just now
update webhooks
set state = 'waiting', tries = 0, created_at = :now, due_at = :now, ended_at = null, status = null, error = null,
  claim_token = null, claimed_until = null
where id = :id and (claim_token is null or claimed_until <= :now)

-- spare_webhooks: what else waits for a receiver that is gone fails, but for what others hold; returns what is to be told
update webhooks
set state = 'failed', ended_at = :now, status = null, error = :error
where id in (
  select id from webhooks where url = :url and state = 'waiting' and claim_token is null limit 10000
)
returning job_id, url, tries

-- close_receiver: nothing is sent to this URL until somebody sends again
insert into webhooks_gone (url, at) values (:url, :now) on conflict (url) do update set at = excluded.at

-- open_receiver: counts the receiver of a message as there again
delete from webhooks_gone where url = (select url from webhooks where id = :id)

-- add_message: makes a message for whoever is told of stale and of deleted jobs
insert into webhooks (job_id, url, type, attempt, created_at, due_at, body)
values (:id, :hook, :type, :attempt, :now, :now, :body)
