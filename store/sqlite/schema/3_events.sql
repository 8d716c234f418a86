-- The log of events, written in the transaction that makes its events true: there is one writer at
-- a time, so their order is that of the commits.

-- A row has the events of one type and one transaction, with the positions last - size + 1 to last.
-- `jobs`: a JSON list of [job id, kind, target, attempt, own data], one for each event; null = one
-- event of no job.
create table event_log (
  last integer primary key,
  at integer not null,
  type text not null,
  size integer not null,
  jobs text,
  common text -- JSON: the data of all that have none of their own
);

create table event_head (last integer not null);
insert into event_head values (0);

create trigger event_log_grows after insert on event_log
begin
  update event_head set last = new.last;
end;

-- For people with a SQL shell: one row an event.
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
    when json_extract(job.value, '$[3]') is null then coalesce(json_extract(job.value, '$[4]'), log.common, '{}')
    else json_insert(coalesce(json_extract(job.value, '$[4]'), log.common, '{}'), '$.attempt', json_extract(job.value, '$[3]'))
  end as data
from event_log as log left join json_each(log.jobs) as job on log.jobs is not null;
