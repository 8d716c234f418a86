-- webhooks_of: where the end of a job is told, and how that went at the last one
select coalesce(message.url, job.webhook, of_kind.webhook, of_all.webhook),
  case message.state when 'delivered' then message.ended_at end, coalesce(message.tries, 0)
from job_rows job
left join webhooks message on message.id = (
  select id from webhooks
  where job_id = job.id and type in ('job.succeeded', 'job.failed', 'job.canceled')
  order by id desc limit 1
)
left join kind_rules of_kind on of_kind.kind = job.kind
left join kind_rules of_all on of_all.kind = ''
where job.id = :job_id and coalesce(message.url, job.webhook, of_kind.webhook, of_all.webhook) is not null
