-- What happens under a lease: it is renewed, the job's progress is noted, its attempt is settled, or the lease is lost.
-- Every write names the job and the token of its claim, and changes nothing unless the job stands in a lease of that token.
-- Whoever ends attempts locks the leases first: what is taken out of a set, and what was known of it, is read under that lock.
-- Rows are then found by their keys, because a row that was waited for has another place in its table.

-- part given: what a call is about: sets of jobs, one for each token
given as materialized (
    select token, jobs from unnest(%(tokens)s::uuid[], %(sets)s::int8multirange[]) as given (token, jobs)
)

-- part ended_sets: the jobs that are to end, in sets: one for each token and target
given as materialized (
    select token, target, jobs
    from unnest(%(set_tokens)s::uuid[], %(set_targets)s::text[], %(sets)s::int8multirange[]) as given (token, target, jobs)
)

-- part taken: takes the jobs in `given` out of their leases; `stood` is what stood there, by the place of its token, and `begun`
-- those of them that are known to have started
mine as materialized (
    select lease.id, lease.token, lease.kind, lease.node, lease.jobs * given.jobs as done, lease.jobs - given.jobs as rest,
           lease.started, lease.workers, lease.started_at
    from given join {schema}.leases lease
        on lease.token = given.token and lease.target = given.target and lease.jobs && given.jobs
    order by lease.target, lease.token, lease.id for update of lease
),
gone as (delete from {schema}.leases lease using mine where lease.id = mine.id and isempty(mine.rest)),
less as (update {schema}.leases lease set jobs = mine.rest from mine where lease.id = mine.id and not isempty(mine.rest)),
stood as materialized (
    select array_position(%(tokens)s::uuid[], mine.token) as nth, mine.token, min(mine.node) as node, range_agg(stretch.ids) as done
    from mine cross join lateral unnest(mine.done) as stretch (ids) group by mine.token
),
begun as materialized (
    select array_agg(start.id) as ids, array_agg(start.worker) as workers, array_agg(start.at) as moments
    from mine cross join lateral unnest(mine.started, mine.workers, mine.started_at) as start (id, worker, at)
    where mine.done @> start.id
)

-- part endings: which of the jobs in `settled` have ended, for retention; a failed one that halts its target is not over yet
endings as (
    insert into {schema}.endings (state, kind, at, jobs)
    select state, kind, greatest((select at from now), max(finished_at)), range_agg(int8range(id, id, '[]')) from settled
    where state in ('succeeded', 'canceled') or state = 'failed' and (target is null or cleared_at is not null)
    group by state, kind
)

-- part attended: locks the leases of the jobs in `given`, and finds those that have started since the store was told last: `late`
-- Those that are to be extended must not have run out: whoever reaps them may be about to.
mine as materialized (
    select lease.id, lease.token, lease.kind, lease.target, lease.node, lease.claimed_at, lease.expires_at, lease.heartbeat_at,
           lease.jobs * given.jobs as kept, lease.jobs - given.jobs as rest, lease.started, lease.workers, lease.started_at
    from given join {schema}.leases lease on lease.token = given.token and lease.jobs && given.jobs
    where %(lease_seconds)s::float8 is null or lease.expires_at > clock_timestamp()
    order by lease.target, lease.token, lease.id for no key update of lease
),
late as materialized (
    select mine.id as lease_id, mine.node, start.id, start.worker, to_timestamp(start.epoch) as at
    from unnest(%(started)s::bigint[], %(workers)s::int[], %(started_epochs)s::float8[]) as start (id, worker, epoch)
    join mine on mine.kept @> start.id
    where start.id <> all (mine.started)
),
added as materialized (
    select lease_id, array_agg(id) as started, array_agg(worker) as workers, array_agg(at) as started_at from late group by lease_id
),
drafted as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, attempts, workers, common)
    select 'job.started', count(*), array_agg(job.id), array_agg(job.kind),
           case when count(job.target) > 0 then array_agg(job.target) end,
           array_agg(job.attempt + 1), array_agg(late.worker), jsonb_build_object('node', late.node)
    from late join {schema}.job_rows job using (id) group by late.node
)

-- renew: extends the leases that still stand, unless `lease_seconds` is null, and marks the jobs that have started; returns the
-- jobs, and those whose holder is asked for something, with what it is
-- A lease of which not all jobs are given is split: the others run out when they would have. Those given stay in its row,
-- because a statement that waits for it sees no row that is made meanwhile.
with now as materialized (select clock_timestamp() as at),
{given},
{attended},
extended as (
    update {schema}.leases lease
    set jobs = mine.kept, expires_at = now.at + make_interval(secs => %(lease_seconds)s::float8), heartbeat_at = now.at,
        started = mine.started || coalesce(added.started, '{}'), workers = mine.workers || coalesce(added.workers, '{}'),
        started_at = mine.started_at || coalesce(added.started_at, '{}')
    from now, mine left join added on added.lease_id = mine.id
    where lease.id = mine.id and %(lease_seconds)s::float8 is not null
),
split as (
    insert into {schema}.leases (token, kind, target, node, claimed_at, expires_at, heartbeat_at, jobs, span, started, workers,
        started_at)
    select token, kind, target, node, claimed_at, expires_at, heartbeat_at, rest, range_merge(rest), started, workers, started_at
    from mine where not isempty(rest) and %(lease_seconds)s::float8 is not null
),
marked as (
    update {schema}.leases lease
    set started = mine.started || added.started, workers = mine.workers || added.workers,
        started_at = mine.started_at || added.started_at
    from mine join added on added.lease_id = mine.id
    where lease.id = mine.id and %(lease_seconds)s::float8 is null
)
select array(select generate_series(lower(stretch.ids), upper(stretch.ids) - 1)
             from mine cross join lateral unnest(mine.kept) as stretch (ids)),
       asked.ids, asked.requests, (select extract(epoch from at)::float8 from now)
from (select array_agg(job.id) as ids, array_agg(job.request) as requests
      from {schema}.job_rows job join mine on mine.kept @> job.id where job.request is not null) asked

-- note_progress: writes progress and what was spent, each fenced by its claim token; returns the ids that took it
-- A note that was overtaken by the end of its phase changes nothing.
with noted as (
    update {schema}.job_rows job
    set progress = coalesce(note.percent, case when job.progress_of = job.attempt + 1 then job.progress end),
        progress_note = case when note.percent is not null then note.words
                             when job.progress_of = job.attempt + 1 then job.progress_note end,
        progress_of = job.attempt + 1, changed_at = clock_timestamp(),
        spent = coalesce(note.spent::jsonb, job.spent)
    from (
        select note.* from unnest(
            %(ids)s::bigint[], %(tokens)s::uuid[], %(percents)s::float4[], %(notes)s::text[], %(spents)s::text[],
            %(phases)s::text[], %(phase_percents)s::float4[])
            as note (id, token, percent, words, spent, phase, phase_percent)
        join {schema}.leases lease on lease.token = note.token and lease.jobs @> note.id
        order by lease.target, lease.token, lease.id for key share of lease) note
    where job.id = note.id
      and (note.phase is null or note.percent >= coalesce(case when job.progress_of = job.attempt + 1 then job.progress end, 0))
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

-- note_logs: writes what jobs in hand have logged, each part fenced by its claim token; returns the ids that took it
with noted as materialized (
    select note.* from unnest(
        %(ids)s::bigint[], %(tokens)s::uuid[], %(firsts)s::bigint[], %(lasts)s::bigint[], %(floors)s::bigint[], %(texts)s::text[])
        as note (id, token, first, last, floor, words)
    join {schema}.leases lease on lease.token = note.token and lease.jobs @> note.id
    order by lease.target, lease.token, lease.id for key share of lease
),
dropped as (
    delete from {schema}.live_logs said using noted
    where said.job_id = noted.id and (said.token <> noted.token or said.last <= noted.floor)
)
insert into {schema}.live_logs (job_id, token, first, last, words)
select id, token, first, last, words from noted order by id
on conflict (job_id, token, first) do update set last = excluded.last, words = excluded.words
returning job_id

-- forget_logs: deletes what was noted of the logs of attempts that end in this transaction
delete from {schema}.live_logs said
using unnest(%(ids)s::bigint[], %(tokens)s::uuid[]) as ended (id, token)
where said.job_id = ended.id and said.token = ended.token

-- lock_leases: locks leases in the order in which every statement does, before several statements that settle jobs of them
with {ended_sets}
select count(*) from (
    select lease.id from given join {schema}.leases lease
        on lease.token = given.token and lease.target = given.target and lease.jobs && given.jobs
    order by lease.target, lease.token, lease.id for update of lease) locked

-- settle: ends attempts, each fenced by its claim token; returns the ids that changed nothing because their lease was lost, and
-- those that a request canceled or paused
-- A job that would go on, but has a request to cancel or pause it, ends or pauses instead: no request is ever lost.
-- What happened is summed up once; the rest of the statement skips whatever the sums say did not happen.
with now as materialized (select clock_timestamp() as at),
{ended_sets},
{taken},
ended as materialized (  -- shorter arrays are padded with nulls, which stand for a plain success
    select ended.id, stood.token, stood.node, coalesce(begun.workers[known.place], ended.worker) as worker,
           coalesce(ended.state, 'succeeded') as state, coalesce(ended.outcome, 'succeeded') as outcome,
           coalesce(to_timestamp(ended.started_epoch), begun.moments[known.place]) as started_at,
           to_timestamp(ended.ended_epoch) as finished_at,
           ended.started_epoch is not null and known.place is null as late_start,
           ended.delay_seconds, ended.result, ended.error, ended.reason, coalesce(ended.forgive, false) as forgive, ended.log,
               ended.spent,
           ended.percent, ended.note, ended.phase, ended.phase_percent,
               coalesce(ended.state in ('queued', 'paused'), false) as goes_on
    from unnest(
        %(ids)s::bigint[], %(which)s::int[], %(workers)s::int[], %(states)s::text[], %(outcomes)s::text[],
        %(started_epochs)s::float8[], %(ended_epochs)s::float8[], %(delays)s::float8[], %(results)s::text[],
        %(errors)s::text[], %(reasons)s::text[], %(forgive)s::bool[], %(logs)s::text[], %(spents)s::text[],
        %(percents)s::float4[], %(notes)s::text[], %(phases)s::text[], %(phase_percents)s::float4[])
    as ended (id, which, worker, state, outcome, started_epoch, ended_epoch, delay_seconds, result, error, reason, forgive, log,
        spent,
              percent, note, phase, phase_percent)
    join stood on stood.nth = coalesce(ended.which, 1) and stood.done @> ended.id
    cross join begun cross join lateral (select array_position(begun.ids, ended.id) as place) known
    order by ended.id
),
settled as (
    update {schema}.job_rows job
    set state = case when job.request is null or not ended.goes_on then ended.state
                     when job.request = 'cancel' then 'canceled' else 'paused' end,
        attempt = job.attempt + 1, claim_token = ended.token, node = ended.node, worker = ended.worker,
        started_at = ended.started_at, finished_at = ended.finished_at,
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
        progress_of = job.attempt + 1,
        progress = coalesce(ended.percent, case when job.progress_of = job.attempt + 1 then job.progress end),
        progress_note = case when ended.percent is not null then ended.note
                             when job.progress_of = job.attempt + 1 then job.progress_note end,
        log = ended.log, spent = coalesce(ended.spent::jsonb, job.spent),
        forgiven = job.forgiven + ended.forgive::int,
        max_attempts = job.max_attempts + ended.forgive::int
    from ended
    where job.id = ended.id
    returning job.id, job.attempt, job.state, job.kind, job.target, job.worker, job.node, ended.late_start, job.webhook,
        ended.goes_on,
              ended.percent, job.started_at, job.finished_at, ended.outcome, ended.error, ended.log, ended.state as wished,
              job.priority, job.run_at, job.reason, job.cleared_at, ended.note, ended.phase, ended.phase_percent
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
back as materialized (
    select id, priority, run_at, kind, target from settled where (select queued from sums) > 0 and state = 'queued'
),
{put_back},
{endings},
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
                      when outcome = 'snoozed' then jsonb_build_object('outcome', outcome, 'reason', left(reason, 1000),
                               'run_at', {schema}.time_text(run_at))
                      when outcome <> 'retrying' then jsonb_build_object('outcome', outcome, 'reason', left(reason, 1000))
                      else jsonb_build_object('error', {schema}.short_error(error::jsonb), 'run_at',
                          {schema}.time_text(run_at)) end as details
          from settled where (select all_of_them > succeeded from sums) and state <> 'succeeded') other
    group by what, kind, target is not null
    returning 1
)
select case when (select all_of_them from sums) = cardinality(%(ids)s::bigint[]) then '{}'::bigint[]
            else array(select unnest(%(ids)s::bigint[]) except select id from settled) end,
       array(select id from settled where (select turned from sums) > 0 and goes_on and state <> wished and state = 'canceled'),
       array(select id from settled where (select turned from sums) > 0 and goes_on and state <> wished and state = 'paused')
where (  -- after the drafts, because a message that fails at once drafts an event too
    select count({schema}.make_end_message(id, kind, 'job.' || state, attempt, webhook)) from settled
    where (state in ('failed', 'canceled') or state = 'succeeded' and webhook is null) and (select count(*) from drafted) > 0
      and (select own_webhooks > 0 or exists (select from {schema}.kind_rules rule where rule.webhook is not null) from sums)) >= 0

-- settle_successes: as settle, for attempts of which nothing else is to be said than their result; returns the ids that changed
-- nothing
-- Of attempts and kinds one value stands for all.
-- Rows say nothing back, which would cost as much again as half of the statement: what stood in the leases is what succeeds,
-- and their lock orders what is drafted here behind all else that their holder had drafted.
with now as materialized (select clock_timestamp() as at),
{ended_sets},
{taken},
stands as materialized (
    select ended.id, stood.token, stood.node, coalesce(ended.kind, (%(kinds)s::text[])[1]) as kind, ended.target,
           coalesce(ended.attempt, (%(attempts)s::int[])[1]) as attempt,
               coalesce(begun.workers[known.place], ended.worker) as worker,
           coalesce(to_timestamp(ended.started_epoch), begun.moments[known.place]) as started_at,
           to_timestamp(ended.ended_epoch) as finished_at, known.place is null as late_start, ended.result
    from unnest(%(ids)s::bigint[], %(which)s::int[], %(workers)s::int[], %(started_epochs)s::float8[], %(ended_epochs)s::float8[],
                %(attempts)s::int[], %(kinds)s::text[], %(targets)s::text[], %(results)s::text[])
         as ended (id, which, worker, started_epoch, ended_epoch, attempt, kind, target, result)
    join stood on stood.nth = coalesce(ended.which, 1) and stood.done @> ended.id
    cross join begun cross join lateral (select array_position(begun.ids, ended.id) as place) known
),
succeeded as (
    update {schema}.job_rows job
    set state = 'succeeded', attempt = job.attempt + 1, claim_token = stands.token, node = stands.node, worker = stands.worker,
        started_at = stands.started_at, finished_at = stands.finished_at, last_outcome = 'succeeded',
        result = stands.result::jsonb, error = null, reason = null, log = null, request = null, requested_at = null,
        progress = case when job.progress_of = job.attempt + 1 then job.progress end,
        progress_note = case when job.progress_of = job.attempt + 1 then job.progress_note end,
        progress_of = job.attempt + 1
    from stands where job.id = stands.id
),
endings as (
    insert into {schema}.endings (state, kind, at, jobs)
    select 'succeeded', mine.kind, last.at, range_agg(stretch.ids)
    from (select greatest((select at from now), max(finished_at)) as at from stands) last,
         mine cross join lateral unnest(mine.done) as stretch (ids) group by mine.kind, last.at
),
drafted as (
    insert into {schema}.event_drafts (succeeded, type, size, job_ids, kinds, targets, attempts, workers, common)
    select null, 'job.started', count(*), array_agg(id), array[kind], case when count(target) > 0 then array_agg(target) end,
           case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end, array_agg(worker),
           jsonb_build_object('node', node)
    from stands where late_start group by node, kind
  union all
    select count(*), 'job.succeeded', count(*), array_agg(id), array[kind], case when count(target) > 0 then array_agg(target) end,
           case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end, null, null
    from stands group by kind
    returning 1
)
select case when (select count(*) from stands) = cardinality(%(ids)s::bigint[]) then '{}'::bigint[]
            else array(select unnest(%(ids)s::bigint[]) except select id from stands) end
where (  -- as in settle; those with a URL of their own have a trigger
    select count({schema}.make_end_message(stands.id, stands.kind, 'job.succeeded', stands.attempt, null))
    from stands join {schema}.job_rows job using (id)
    where (select count(*) from drafted) > 0 and job.webhook is null
      and exists (select from {schema}.kind_rules rule where rule.webhook is not null)) >= 0

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

-- reap: ends leases that have run out as their kinds ask for, at most `batch` jobs; skips rows that are locked
-- Jobs with a target are reaped by a call of their own, because the target is then passed on; a call for the others says by
-- a row without id whether there are any. A request to cancel or pause goes before what the kind asks for.
with now as materialized (select clock_timestamp() as at),
held as materialized (
    select holder.target from {schema}.target_holders holder
    where %(targeted)s and holder.target = any (array(
        select lease.target from {schema}.leases lease where lease.target <> '' and lease.expires_at <= (select at from now)))
    order by holder.target limit %(batch)s for update skip locked
),
late as materialized (
    select lease.id, lease.token, lease.target, lease.node, lease.expires_at, lease.jobs, lease.started, lease.workers,
        lease.started_at
    from {schema}.leases lease
    where lease.expires_at <= (select at from now) and (lease.target <> '') = %(targeted)s
      and (not %(targeted)s or lease.target = any (array(select target from held))
           or not exists (select from {schema}.target_holders holder where holder.target = lease.target))
    order by lease.target, lease.token, lease.id limit %(batch)s for update skip locked
),
enough as materialized (  -- of the leases as many as there are jobs for in the batch
    select late.*, sum(late.number) over (order by late.id) - late.number as before
    from (select late.*, (select coalesce(sum(upper(ids) - lower(ids)), 0) from unnest(late.jobs) as stretch (ids)) as number
          from late) late
),
expired as materialized (
    select job.id, job.kind, job.attempt + 1 as attempt, job.max_attempts, job.forgiven, job.request,
           member.lease_id, member.token, member.node, member.expires_at, member.worker, member.started_at
    from (
        select late.id as lease_id, late.token, late.node, late.expires_at, one.id, begun.worker, begun.at as started_at
        from enough late cross join lateral unnest(late.jobs) as stretch (ids)
        cross join lateral generate_series(lower(stretch.ids), upper(stretch.ids) - 1) as one (id)
        left join unnest(late.started, late.workers, late.started_at) as begun (id, worker, at) on begun.id = one.id
        where late.before < %(batch)s) member
    join {schema}.job_rows job on job.id = member.id
    order by job.id limit %(batch)s for no key update of job skip locked
),
done as materialized (
    select lease_id, range_agg(int8range(id, id, '[]')) as jobs from expired group by lease_id
),
gone as (
    delete from {schema}.leases lease using late left join done on done.lease_id = late.id
    where lease.id = late.id and isempty(late.jobs - coalesce(done.jobs, '{}'))
),
less as (
    update {schema}.leases lease set jobs = late.jobs - done.jobs from late join done on done.lease_id = late.id
    where lease.id = late.id and not isempty(late.jobs - done.jobs)
),
judged as materialized (
    select expired.*,
           case when expired.request = 'cancel' then 'canceled' when expired.request = 'pause' then 'paused'
                when expired.attempt >= coalesce(expired.max_attempts,
                         coalesce(rule.max_attempts, %(default_max_attempts)s) + expired.forgiven)
                then 'failed'
                else case coalesce(rule.on_lease_lost, %(default_on_lease_lost)s)
                     when 'fail' then 'failed' when 'pause' then 'paused' else 'queued' end end as state
    from expired left join unnest(%(kinds)s::text[], %(on_lease_lost)s::text[], %(max_attempts)s::int[])
         as rule (kind, on_lease_lost, max_attempts) on rule.kind = expired.kind
),
said as materialized (
    delete from {schema}.live_logs said using judged where said.job_id = judged.id and said.token = judged.token
    returning said.job_id, said.first, said.words
),
logs as materialized (select job_id, string_agg(words, '' order by first) as words from said group by job_id),
settled as (
    update {schema}.job_rows job
    set state = judged.state, attempt = judged.attempt, claim_token = judged.token, node = judged.node, worker = judged.worker,
        started_at = judged.started_at, finished_at = greatest(judged.started_at, now.at),
        last_outcome = case when judged.state = 'queued' then null else 'lost' end,
        reason = case when judged.request = 'cancel' then 'canceled on request'
                      when judged.request = 'pause' then 'Job was interrupted by user'
                      when judged.state = 'paused' then 'its lease was lost' end,
        request = null, requested_at = null, result = null, log = logs.words,
        progress = case when job.progress_of = judged.attempt then job.progress end,
        progress_note = case when job.progress_of = judged.attempt then job.progress_note end,
        progress_of = judged.attempt,
        error = jsonb_build_object('type', 'lease_lost', 'message', format(
            'attempt %%s: node %%s did not renew its lease, which ran out at %%s', judged.attempt, judged.node,
            to_char(judged.expires_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
    from now, judged left join logs on logs.job_id = judged.id
    where job.id = judged.id
    returning job.id, job.kind, job.attempt, job.node, job.worker, job.started_at, job.finished_at, job.state, job.error, job.log,
              job.target, job.priority, job.run_at, job.reason, job.cleared_at, job.webhook
),
kept as (
    insert into {schema}.attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error, log)
    select id, attempt, node, worker, started_at, finished_at, 'lost', error, log from settled where state = 'queued'
),
back as materialized (select id, priority, run_at, kind, target from settled where state = 'queued'),
{put_back},
{endings},
counted as (
    insert into {schema}.count_changes (queued, paused, failed, canceled)
    select count(*) filter (where state = 'queued'), count(*) filter (where state = 'paused'),
           count(*) filter (where state = 'failed'), count(*) filter (where state = 'canceled')
    from settled having count(*) > 0
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
        from settled
    ) happened group by type returning 1
)
select id, kind, attempt, node, state, target from settled
where (  -- as in settle
    select count({schema}.make_end_message(id, kind, 'job.' || state, attempt, webhook)) from settled
    where state in ('failed', 'canceled') and (select count(*) from drafted) > 0) >= 0
union all
select null, null, null, null, null, null
where not %(targeted)s and exists (
    select from {schema}.leases lease
    where lease.target <> '' and lease.expires_at <= (select at from now) and not isempty(lease.jobs))

-- set_aside_lost: ends those of the jobs whose leases have run out about which no end could be written, and mends their rows
select id, kind, attempt, node, found from {schema}.set_aside_lost(%(bound)s)

-- oldest_in_hand: of the first `bound` leased jobs the one that has run longest, and how many leases have run out
with held as materialized (
    select id, kind, started_at, expires_at from {schema}.first_in_hand(0, %(bound)s)
),
oldest as (select id, kind, started_at from held where started_at is not null order by started_at, id limit 1)
select oldest.id, oldest.kind, extract(epoch from clock_timestamp() - oldest.started_at)::float8, late.number
from (select count(*) as number from held where expires_at < clock_timestamp()) late left join oldest on true
