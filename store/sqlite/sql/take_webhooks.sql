-- take_webhooks: messages that are due, the longest due first; to be held, each
select id, 'msg_' || message_id, job_id, url, type, attempt, tries + 1, created_at, body
from webhooks
where state = 'waiting' and due_at <= :now
order by due_at, id
limit :count
