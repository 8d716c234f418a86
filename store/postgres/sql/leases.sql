-- What happens under a lease: it is renewed, the job's progress is noted, its attempt is settled, or the lease is lost.
-- Every write names the job and its claim token, and asks for the lease as `coalesce(lease_expires_at, '-infinity') > '-infinity'`.
-- A lease stands exactly in the states assigned and running, but that condition would make the planner believe that hardly
-- any row fits: it would begin with all leased jobs and look for these few among them.

-- renew: extends the leases that still stand and marks the jobs that have started; returns the ids extended, each with the request to its holder
with now as materialized (select clock_timestamp() as at),
kept as (
    update {schema}.job_rows job
    set lease_expires_at = now.at + make_interval(secs => %(lease_seconds)s), heartbeat_at = now.at,
        state = case when hold.started_age is null then job.state else 'running' end,
        late_start = job.state = 'assigned' and hold.started_age is not null,
        worker = coalesce(hold.worker, job.worker),
        started_at = coalesce(job.started_at, now.at - make_interval(secs => hold.started_age))
    from now, unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(workers)s::int[], %(started_ages)s::float8[])
         as hold (id, token, worker, started_age)
    where job.id = hold.id and job.claim_token = hold.token and coalesce(job.lease_expires_at, '-infinity') > '-infinity'
    returning job.id, job.request, job.kind, job.target, job.attempt, job.node, job.worker, job.late_start
),
drafted as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, workers, common)
    select 'job.started', count(*), array_agg(id), array_agg(kind), case when count(target) > 0 then array_agg(target) end,
           array_agg(attempt), array_agg(worker), jsonb_build_object('node', node)
    from kept where late_start group by node
)
select id, request from kept

-- note_progress: writes progress and what was spent, each fenced by its claim token; returns the ids that took it
-- A note that was overtaken by the end of its phase changes nothing.
with noted as (
    update {schema}.job_rows job
    set progress = coalesce(note.percent, job.progress),
        progress_note = case when note.percent is null then job.progress_note else note.words end,
        spent = coalesce(note.spent::jsonb, job.spent)
    from unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(percents)s::float4[], %(notes)s::text[], %(spents)s::text[],
                %(phases)s::text[], %(phase_percents)s::float4[])
         as note (id, token, percent, words, spent, phase, phase_percent)
    where job.id = note.id and job.claim_token = note.token and coalesce(job.lease_expires_at, '-infinity') > '-infinity'
      and (note.phase is null or note.percent >= coalesce(job.progress, 0))
    returning job.id, job.kind, job.target, note.percent, note.words, note.phase, note.phase_percent
),
phased as (
    update {schema}.job_phases phase set progress = noted.phase_percent
    from noted where phase.job_id = noted.id and phase.name = noted.phase and phase.state = 'running'
),
drafted as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, details)
    select 'job.progress', count(*), array_agg(id), array_agg(kind), case when count(target) > 0 then array_agg(target) end,
           array_agg(jsonb_build_object('overall', floor(percent + 0.5)::int, 'phase', phase,
                                        'progress', coalesce(phase_percent, percent), 'note', words))
    from noted where percent is not null having count(*) > 0
)
select id from noted

-- settle: ends attempts, each fenced by its claim token; returns the ids that changed nothing because their lease was lost, and those that a request canceled or paused
-- A job that would go on, but has a request to cancel or pause it, ends or pauses instead: no request is ever lost.
-- What happened is summed up once; the rest of the statement skips whatever the sums say did not happen.
with now as materialized (select clock_timestamp() as at),
ended as materialized (  -- shorter arrays are padded with nulls, which stand for a plain success
    select id, token, worker, coalesce(state, 'succeeded') as state, coalesce(outcome, 'succeeded') as outcome,
           started_age, ended_age, delay_seconds, result, error, reason, coalesce(forgive, false) as forgive, log, spent,
           percent, note, phase, phase_percent, coalesce(state in ('queued', 'paused'), false) as goes_on
    from unnest(
        %(ids)s::bigint[], %(tokens)s::uuid[], %(workers)s::int[], %(states)s::text[], %(outcomes)s::text[],
        %(started_ages)s::float8[], %(ended_ages)s::float8[], %(delays)s::float8[], %(results)s::text[],
        %(errors)s::text[], %(reasons)s::text[], %(forgive)s::bool[], %(logs)s::text[], %(spents)s::text[],
        %(percents)s::float4[], %(notes)s::text[], %(phases)s::text[], %(phase_percents)s::float4[])
    as ended (id, token, worker, state, outcome, started_age, ended_age, delay_seconds, result, error, reason, forgive, log, spent,
              percent, note, phase, phase_percent)
),
settled as (
    update {schema}.job_rows job
    set state = case when job.request is null or not ended.goes_on then ended.state
                     when job.request = 'cancel' then 'canceled' else 'paused' end,
        worker = coalesce(ended.worker, job.worker),
        started_at = coalesce(job.started_at, (select at from now) - make_interval(secs => ended.started_age)),
        finished_at = (select at from now) - make_interval(secs => ended.ended_age),
        lease_expires_at = null, heartbeat_at = null,
        run_at = case when ended.delay_seconds is not null and ended.state = 'queued' and job.request is null
                      then (select at from now) + make_interval(secs => ended.delay_seconds) else job.run_at end,
        last_outcome = case when not ended.goes_on or ended.state <> 'queued' then ended.outcome when job.request is null then null
                            when ended.outcome = 'retrying' then 'failed' else ended.outcome end,
        result = ended.result::jsonb,
        error = case when ended.goes_on and ended.state = 'queued' and job.request is null
                     then coalesce(ended.error::jsonb, job.error) else ended.error::jsonb end,
        reason = case when job.request is null or not ended.goes_on then ended.reason
                      when job.request = 'cancel' then 'canceled on request' else 'Job was interrupted by user' end,
        request = null, requested_at = null,
        late_start = ended.started_age is not null and job.state = 'assigned',
        progress = coalesce(ended.percent, job.progress),
        progress_note = case when ended.percent is null then job.progress_note else ended.note end,
        log = ended.log, spent = coalesce(ended.spent::jsonb, job.spent),
        forgiven = job.forgiven + ended.forgive::int,
        max_attempts = job.max_attempts + ended.forgive::int
    from ended
    where job.id = ended.id and job.claim_token = ended.token and coalesce(job.lease_expires_at, '-infinity') > '-infinity'
    returning job.id, job.attempt, job.state, job.kind, job.target, job.worker, job.node, job.late_start, job.webhook, ended.goes_on,
              ended.percent, job.started_at, job.finished_at, ended.outcome, ended.error, ended.log, ended.state as wished,
              job.run_at, job.reason, ended.note, ended.phase, ended.phase_percent
),
sums as materialized (
    select count(*) as all_of_them, count(*) filter (where state = 'succeeded') as succeeded,
           count(*) filter (where state = 'queued') as queued, count(*) filter (where state = 'paused') as paused,
           count(*) filter (where state = 'failed') as failed, count(*) filter (where state = 'canceled') as canceled,
           count(*) filter (where late_start) as late, count(percent) as progressed, count(webhook) as own_webhooks,
           count(*) filter (where goes_on and state <> wished) as turned
    from settled
),
kept as (
    insert into {schema}.attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error, log)
    select id, attempt, node, worker, started_at, finished_at, outcome, error::jsonb, log from settled
    where (select queued from sums) > 0 and state = 'queued'
),
counted as (
    insert into {schema}.count_changes (queued, paused, succeeded, failed, canceled)
    select queued, paused, succeeded, failed, canceled from sums where all_of_them > 0
),
drafted as (  -- in this order for each job, after the drafts of settle_phases; a single value stands for all that are equal
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, workers, common, details)
    select 'job.started', count(*), array_agg(id), array[kind], case when target is not null then array_agg(target) end,
           case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end, array_agg(worker),
           jsonb_build_object('node', node), null
    from settled where (select late from sums) > 0 and late_start
    group by node, kind, target is not null
  union all
    select 'job.progress', count(*), array_agg(id), array[kind], case when target is not null then array_agg(target) end,
           null, null, null,
           array_agg(jsonb_build_object('overall', floor(percent + 0.5)::int, 'phase', phase,
                                        'progress', coalesce(phase_percent, percent), 'note', note))
    from settled where (select progressed from sums) > 0 and percent is not null
    group by kind, target is not null
  union all
    select 'job.succeeded', count(*), array_agg(id), array[kind], case when target is not null then array_agg(target) end,
           case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end, null, null, null
    from settled where (select succeeded from sums) > 0 and state = 'succeeded'
    group by kind, target is not null
  union all
    select 'job.' || what, count(*), array_agg(id), array[kind], case when target is not null then array_agg(target) end,
           array_agg(attempt), null, null, array_agg(details)
    from (select id, kind, target, attempt,
                 case when state <> 'queued' then state when outcome = 'retrying' then outcome else 'requeued' end as what,
                 case when state = 'failed' then jsonb_build_object('error', {schema}.short_error(error::jsonb))
                      when state <> 'queued' then jsonb_build_object('reason', left(reason, 1000))
                      when outcome <> 'retrying' then jsonb_build_object('outcome', outcome, 'reason', left(reason, 1000))
                      else jsonb_build_object('error', {schema}.short_error(error::jsonb), 'run_at',
                               to_char(run_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) end as details
          from settled where (select all_of_them > succeeded from sums) and state <> 'succeeded') other
    group by what, kind, target is not null
    returning 1
)
select case when (select all_of_them from sums) = cardinality(%(ids)s::bigint[]) then '{}'::bigint[]
            else array(select id from ended except select id from settled) end,
       array(select id from settled where (select turned from sums) > 0 and goes_on and state <> wished and state = 'canceled'),
       array(select id from settled where (select turned from sums) > 0 and goes_on and state <> wished and state = 'paused')
where (  -- after the drafts, because a message that fails at once drafts an event too
    select count({schema}.make_end_message(id, kind, 'job.' || state, attempt, webhook)) from settled
    where state in ('succeeded', 'failed', 'canceled') and (select count(*) from drafted) > 0
      and (select own_webhooks > 0 or exists (select from {schema}.kind_rules rule where rule.webhook is not null) from sums)) >= 0

-- settled_already: which of these rejected settlements had been written before, with their reply lost
select ended.id
from unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(attempts)s::int[], %(states)s::text[], %(outcomes)s::text[])
     as ended (id, token, attempt, state, outcome)
where exists (select from {schema}.job_rows job
              where job.id = ended.id and job.claim_token = ended.token and job.attempt = ended.attempt
                and (job.state = ended.state and ended.state <> 'queued' and job.last_outcome = ended.outcome
                     -- a request had ended or paused it
                     or job.state in ('canceled', 'paused') and ended.state in ('queued', 'paused')
                        and job.last_outcome <> 'lost'))
   or exists (select from {schema}.attempts past
              where past.job_id = ended.id and past.attempt = ended.attempt
                and (past.outcome = ended.outcome or past.outcome = 'failed' and ended.outcome = 'retrying'))

-- reap: ends leases that have run out as their kinds ask for, at most `batch`; skips rows that are locked
-- Jobs with a target are reaped by a call of their own, because the target is then passed on; a call for the others says by
-- a row without id whether there are any. A request to cancel or pause goes before what the kind asks for.
with now as materialized (select clock_timestamp() as at),
expired as materialized (
    select job.id, job.kind, job.attempt, job.max_attempts, job.forgiven, job.lease_expires_at, job.request, job.target
    from {schema}.job_rows job
    where job.state in ('assigned', 'running') and job.lease_expires_at <= (select at from now)
      and (job.target is not null) = %(targeted)s
    order by job.id limit %(batch)s for no key update skip locked
),
held as materialized (
    select holder.target from {schema}.target_holders holder
    where %(targeted)s and holder.target = any (array(select target from expired)) for update skip locked
),
judged as materialized (
    select expired.id, expired.lease_expires_at, expired.request,
           case when expired.request = 'cancel' then 'canceled' when expired.request = 'pause' then 'paused'
                when expired.attempt >= coalesce(expired.max_attempts,
                         coalesce(rule.max_attempts, %(default_max_attempts)s) + expired.forgiven)
                then 'failed'
                else case coalesce(rule.on_lease_lost, %(default_on_lease_lost)s)
                     when 'fail' then 'failed' when 'pause' then 'paused' else 'queued' end end as state
    from expired left join unnest(%(kinds)s::text[], %(on_lease_lost)s::text[], %(max_attempts)s::int[])
         as rule (kind, on_lease_lost, max_attempts) on rule.kind = expired.kind
    where not %(targeted)s or expired.target in (select target from held)
       or not exists (select from {schema}.target_holders holder where holder.target = expired.target)
),
reaped as (
    update {schema}.job_rows job
    set state = judged.state, finished_at = now.at, lease_expires_at = null, heartbeat_at = null,
        last_outcome = case when judged.state = 'queued' then null else 'lost' end,
        reason = case when judged.request = 'cancel' then 'canceled on request'
                      when judged.request = 'pause' then 'Job was interrupted by user'
                      when judged.state = 'paused' then 'its lease was lost' end,
        request = null, requested_at = null,
        error = jsonb_build_object('type', 'lease_lost', 'message', format(
            'attempt %%s: node %%s did not renew its lease, which ran out at %%s', job.attempt, job.node,
            to_char(judged.lease_expires_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
    from judged, now
    where job.id = judged.id and job.state in ('assigned', 'running')
    returning job.id, job.kind, job.attempt, job.node, job.worker, job.started_at, job.finished_at, job.state, job.error,
              job.target, job.reason, job.webhook
),
kept as (
    insert into {schema}.attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error)
    select id, attempt, node, worker, started_at, finished_at, 'lost', error from reaped where state = 'queued'
),
counted as (
    insert into {schema}.count_changes (queued, paused, failed, canceled)
    select count(*) filter (where state = 'queued'), count(*) filter (where state = 'paused'),
           count(*) filter (where state = 'failed'), count(*) filter (where state = 'canceled')
    from reaped having count(*) > 0
),
drafted as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, details)
    select type, count(*), array_agg(id), array_agg(kind), case when count(target) > 0 then array_agg(target) end,
           array_agg(attempt), array_agg(details)
    from (
        select id, kind, target, attempt, 'job.' || case state when 'queued' then 'requeued' else state end as type,
               case state when 'queued' then jsonb_build_object('outcome', 'lost', 'reason', 'its lease was lost')
                          when 'failed' then jsonb_build_object('error', {schema}.short_error(error))
                          else jsonb_build_object('reason', reason) end as details
        from reaped
    ) happened group by type returning 1
)
select id, kind, attempt, node, state, target from reaped
where (  -- as in settle
    select count({schema}.make_end_message(id, kind, 'job.' || state, attempt, webhook)) from reaped
    where state in ('failed', 'canceled') and (select count(*) from drafted) > 0) >= 0
union all
select null, null, null, null, null, null
where not %(targeted)s and exists (
    select from {schema}.job_rows job
    where job.state in ('assigned', 'running') and job.lease_expires_at <= (select at from now) and job.target is not null)

-- oldest_in_hand: of the first `bound` leased jobs the one that has run longest, and how many leases have run out
with held as materialized (
    select id, kind, started_at, lease_expires_at from {schema}.job_rows
    where state in ('assigned', 'running') order by id limit %(bound)s
),
oldest as (select id, kind, started_at from held where started_at is not null order by started_at, id limit 1)
select oldest.id, oldest.kind, extract(epoch from clock_timestamp() - oldest.started_at)::float8, late.number
from (select count(*) as number from held where lease_expires_at < clock_timestamp()) late left join oldest on true
