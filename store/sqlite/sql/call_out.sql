-- call_out: the message of a job's end, if its own URL, its kind's or everybody's is known; failed at once where the receiver wants nothing more
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
