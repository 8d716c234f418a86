-- Telling: for people with a SQL shell, the log with one row an event.
create view events as
select
  log.last - log.size + 1 + coalesce(job.key, 0) as id,
  strftime('%Y-%m-%dT%H:%M:%fZ', log.at / 1e6, 'unixepoch') as at,
  log.type,
  json_extract(job.value, '$[0]') as job_id,
  json_extract(job.value, '$[1]') as kind,
  json_extract(job.value, '$[2]') as target,
  case
    when log.jobs is null then coalesce(log.common, '{}')
    when json_extract(job.value, '$[3]') is null then coalesce(json_extract(job.value, '$[4]'), '{}')
    else json_insert(coalesce(json_extract(job.value, '$[4]'), '{}'), '$.attempt', json_extract(job.value, '$[3]'))
  end as data
from event_log as log left join json_each(log.jobs) as job on log.jobs is not null;
