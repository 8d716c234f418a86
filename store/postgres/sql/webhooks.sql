-- webhooks: messages newest first, filtered, at most `bound`
select id, 'msg_' || replace(message_id::text, '-', ''), job_id, url, type, state, tries, created_at, due_at, ended_at, status, error
from {schema}.webhooks
where id < coalesce(%(before_id)s::bigint, 9223372036854775807)
  and (%(job_id)s::bigint is null or job_id = %(job_id)s)
  and (%(state)s::text is null or state = %(state)s)
  and (%(url)s::text is null or url = %(url)s)
order by id desc limit %(bound)s
