-- webhooks: messages newest first, filtered
select id, 'msg_' || message_id, job_id, url, type, state, tries, created_at, due_at, ended_at, status, error
from webhooks
where id < :before and (:job_id is null or job_id = :job_id) and (:state is null or state = :state)
  and (:url is null or url = :url)
order by id desc
limit :count
