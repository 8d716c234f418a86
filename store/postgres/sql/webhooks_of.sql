-- webhooks_of: where the ends of these jobs are told, and how that went at the last one
select job.id, coalesce(message.url, job.webhook, of_kind.webhook, of_all.webhook),
       case message.state when 'delivered' then message.ended_at end, coalesce(message.tries, 0)
from {schema}.job_rows job
left join lateral (
    select url, state, ended_at, tries from {schema}.webhooks
    where job_id = job.id and type in ('job.succeeded', 'job.failed', 'job.canceled')
    order by id desc limit 1) message on true
left join {schema}.kind_rules of_kind on of_kind.kind = job.kind
left join {schema}.kind_rules of_all on of_all.kind = ''
where job.id = any (%(ids)s::bigint[])
  and coalesce(message.url, job.webhook, of_kind.webhook, of_all.webhook) is not null
