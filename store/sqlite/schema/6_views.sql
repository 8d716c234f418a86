-- For people with a SQL shell. The name of a phase's state follows from what is stored of it and the
-- state of its job, as in store/phases.py. A job that never started has the phases that its
-- kind is said to have.
create view jobs as
select
  id, kind, state, payload, result, error, reason, priority, attempt, max_attempts, forgiven,
  strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') as created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', run_at / 1e6, 'unixepoch') as run_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1e6, 'unixepoch') as started_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1e6, 'unixepoch') as finished_at,
  node, worker,
  strftime('%Y-%m-%dT%H:%M:%fZ', lease_expires_at / 1e6, 'unixepoch') as lease_expires_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', heartbeat_at / 1e6, 'unixepoch') as heartbeat_at,
  dedup_key,
  request is 'cancel' as cancel_requested,
  case state when 'succeeded' then 100 else cast(0.5 + max(coalesce(progress, 0), coalesce((
    select 100.0 * sum(phase.state = 'succeeded') / count(*) from job_phases phase where phase.job_id = job.id), 0)) as integer) end
    as progress,
  progress_note,
  strftime('%Y-%m-%dT%H:%M:%fZ', cleared_at / 1e6, 'unixepoch') as cleared_at,
  target,
  (select phase.name from job_phases phase
   where phase.job_id = job.id and phase.state <> 'succeeded' and job.state <> 'succeeded'
   order by phase.place limit 1) as phase,
  (select json_group_array(json_object('name', shown.name, 'state', shown.state,
     'progress', case shown.state when 'succeeded' then 100 when 'pending' then 0 else cast(coalesce(shown.progress, 0) + 0.5 as integer) end,
     'result', json(shown.result)))
   from (
     select known.name, known.progress,
       case when known.stored = 'succeeded' or job.state = 'succeeded' then 'succeeded'
         when job.state = 'canceled' then 'canceled'
         when job.state = 'failed' then case known.stored when 'pending' then 'pending' else 'failed' end
         when job.state in ('assigned', 'running') and known.stored = 'running' then 'running'
         else 'pending' end as state,
       case known.stored when 'succeeded' then known.result end as result
     from (
       select begun.place, begun.name, begun.state as stored, begun.progress, begun.result
       from job_phases begun where begun.job_id = job.id
       union all
       select said.key, said.value, 'pending', null, null
       from kind_rules rule, json_each(rule.phases) said
       where rule.kind = job.kind and not exists (select 1 from job_phases begun where begun.job_id = job.id)
     ) known
     order by known.place
   ) shown) as phases,
  (select json_object('url', coalesce(sent.url, wished.url),
     'sent_at', case sent.state when 'delivered' then strftime('%Y-%m-%dT%H:%M:%fZ', sent.ended_at / 1e6, 'unixepoch') end,
     'attempts', coalesce(sent.tries, 0))
   from (
     select coalesce(job.webhook, (select rule.webhook from kind_rules rule where rule.kind = job.kind),
       (select rule.webhook from kind_rules rule where rule.kind = '')) as url
   ) wished
   left join (
     select hook.url, hook.state, hook.ended_at, hook.tries from webhooks hook
     where hook.job_id = job.id and hook.type in ('job.succeeded', 'job.failed', 'job.canceled')
     order by hook.id desc limit 1
   ) sent on true
   where coalesce(sent.url, wished.url) is not null) as webhook,
  strftime('%Y-%m-%dT%H:%M:%fZ', stale_at / 1e6, 'unixepoch') as stale_at
from job_rows job;
