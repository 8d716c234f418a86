-- telling: whatever changes a job says so in the log of events, and makes the messages of its end

alter table {schema}.event_drafts add column workers integer[];
alter table {schema}.event_log add column workers integer[];

-- The last statement that wrote this row found it assigned although it had started: it tells of the start.
alter table {schema}.job_rows add column late_start boolean not null default false;

-- Moves what has been committed into the log, at most so many drafts, in the order of their ids; gives the newest
-- position. The lock is one statement and the look the next, which sees all that was committed before it had the lock.
-- Of one job the drafts have the order of its changes: each is made under the lock of the job's row.
create function {schema}.order_events(batch integer) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    newest bigint;
begin
    if not exists (select from {schema}.event_drafts) then
        return (select last from {schema}.event_head);
    end if;
    select last into newest from {schema}.event_head for update;
    with taken as (
        delete from {schema}.event_drafts
        where id <= (select max(id) from (select id from {schema}.event_drafts order by id limit batch) first_ones)
        returning *
    ),
    logged as (
        insert into {schema}.event_log (last, at, type, size, job_ids, kinds, targets, attempts, workers, common, details)
        select newest + sum(size) over (order by id), at, type, size, job_ids, kinds, targets, attempts, workers, common, details
        from taken returning last
    )
    update {schema}.event_head head set last = ended.last
    from (select max(last) as last from logged) ended where ended.last is not null
    returning head.last into newest;
    return coalesce(newest, (select last from {schema}.event_head));
end $$;

-- An error as it is told: readers of the log are not to be buried under its message, which the job has as a whole.
create function {schema}.short_error(error jsonb) returns jsonb
    language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case when char_length(error ->> 'message') > 1000
                then jsonb_set(error, '{message}', to_jsonb(left(error ->> 'message', 1000))) else error end
$$;

-- For people with a SQL shell: one row an event. What has just been committed is seen here once a node has put it in
-- order, or whoever calls order_events.
create view {schema}.events as
select log.last - log.size + nth as id, log.at, log.type,
       log.job_ids[case cardinality(log.job_ids) when 1 then 1 else nth end] as job_id,
       log.kinds[case cardinality(log.kinds) when 1 then 1 else nth end] as kind,
       log.targets[case cardinality(log.targets) when 1 then 1 else nth end] as target,
       coalesce(log.common, '{}')
       || case when log.attempts is null then '{}'
               else jsonb_build_object('attempt', log.attempts[case cardinality(log.attempts) when 1 then 1 else nth end]) end
       || case when log.workers is null then '{}'
               else jsonb_build_object('worker', log.workers[case cardinality(log.workers) when 1 then 1 else nth end]) end
       || coalesce(log.details[case cardinality(log.details) when 1 then 1 else nth end], '{}') as data
from {schema}.event_log log cross join lateral generate_series(1, log.size) nth;

-- As in the first migration, and the jobs are told, at most a thousand in one row.
create or replace function {schema}.note_new_jobs() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    arrived integer;
    held integer;
    kinds text[];  -- the first and the last of them
    pending constant jsonb := '{"state": "pending"}';
begin
    select count(*), count(*) filter (where state = 'pending'), array[min(kind collate "C"), max(kind collate "C")]
        into arrived, held, kinds from new_rows;
    if arrived > 0 then
        insert into {schema}.count_changes (enqueued, pending, queued) values (arrived, held, arrived - held);
        if arrived = 1 then
            insert into {schema}.event_drafts (type, job_ids, kinds, targets, common)
            select 'job.enqueued', array[id], kinds[1:1], case when target is not null then array[target] end,
                   case held when 1 then pending end
            from new_rows;
        elsif kinds[1] = kinds[2] and held in (0, arrived) then  -- as large batches are
            insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, common)
            select 'job.enqueued', count(*), array_agg(id), kinds[1:1],
                   case when count(target) > 0 then array_agg(target) end, case when held > 0 then pending end
            from new_rows group by id / 1000 order by min(id);
        else
            insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, common)
            select 'job.enqueued', count(*), array_agg(id), array_agg(kind),
                   case when count(target) > 0 then array_agg(target) end, case state when 'pending' then pending end
            from new_rows group by id / 1000, state order by min(id);
        end if;
        -- One hint at a time is enough: whoever finds the bell being rung leaves it to the ringer, so that
        -- concurrent commits do not queue up behind each other's notifications.
        if pg_try_advisory_xact_lock(1836413797, hashtext('{schema_name}')) then
            perform pg_notify('{channel}', '');
        end if;
    end if;
    return null;
end $$;

-- A receiver that wants nothing more is sent nothing more.
create function {schema}.spare_the_gone() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if new.state = 'waiting' and exists (select from {schema}.webhooks_gone gone where gone.url = new.url) then
        new.state := 'failed';
        new.ended_at := clock_timestamp();
        new.error := 'the receiver answered 410 earlier: nothing is sent there until somebody sends again';
        insert into {schema}.event_drafts (type, job_ids, kinds, targets, common)
        select 'job.webhook_failed', array[job.id], array[job.kind], case when job.target is not null then array[job.target] end,
               jsonb_build_object('url', new.url, 'attempts', 0, 'error', new.error)
        from {schema}.job_rows job where job.id = new.job_id;
    end if;
    return new;
end $$;

create trigger webhooks_spare_the_gone before insert on {schema}.webhooks for each row
    execute function {schema}.spare_the_gone();

-- Makes the message of a job's end, if its own URL, its kind's or everybody's is known.
create function {schema}.call_out(job bigint, kind text, event text, attempt integer, own text) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into {schema}.webhooks (job_id, url, type, attempt)
    select call_out.job, wanted.url, call_out.event, call_out.attempt
    from (select coalesce(call_out.own,
                     (select rule.webhook from {schema}.kind_rules rule where rule.kind = call_out.kind),
                     (select rule.webhook from {schema}.kind_rules rule where rule.kind = '')) as url) wanted
    where wanted.url is not null;
end $$;

-- As in the sixth migration, and what was done is told.
-- Acts on one job. Returns whether there is such a job, its state before and after, whether its holder has been asked,
-- and whether the action was allowed. What holds the row is waited for; what is decided is decided on its newest version.
create or replace function {schema}.control_job(action text, wanted bigint,
    out known boolean, out state_before text, out state_after text, out requested boolean, out allowed boolean)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    job record;
    effect text;
    moment timestamptz;
begin
    select * into job from {schema}.lock_job(wanted);
    known := job.state is not null;
    state_before := job.state;
    state_after := job.state;
    requested := false;
    effect := {schema}.control_effect(action, job.state);
    -- A cancel that was asked for is not taken back by a pause.
    allowed := effect is not null and not (action = 'pause' and job.request is not distinct from 'cancel');
    if not allowed then
        return;
    end if;
    moment := clock_timestamp();
    if effect = 'ask' then
        requested := true;
        update {schema}.job_rows j set request = action, requested_at = moment where j.id = wanted;
        perform pg_notify('{channel}', wanted::text);
        return;
    end if;
    state_after := effect;
    if action = 'clear' and effect = 'failed' then
        update {schema}.job_rows j set cleared_at = moment where j.id = wanted and j.cleared_at is null;
        if found then
            perform {schema}.tell_control('job.cleared', wanted);
        end if;
        perform {schema}.hand_over(array[job.target], true) where job.target is not null;
        return;
    end if;
    -- The attempt that ended last goes into the history: the job's own row tells of its next, or of its end.
    insert into {schema}.attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error, log)
        select j.id, j.attempt, j.node, j.worker, j.started_at, j.finished_at, j.last_outcome,
               j.error, j.log
        from {schema}.job_rows j where j.id = wanted and j.last_outcome is not null;
    update {schema}.job_rows j
        set state = effect,
            run_at = case when action = 'resume' then moment else j.run_at end,
            finished_at = case when effect = 'canceled' then moment else j.finished_at end,
            cleared_at = case when action = 'clear' then moment end,
            reason = case action when 'cancel' then 'canceled on request' when 'clear' then 'cleared on request'
                                 when 'pause' then 'Job was interrupted by user' end,
            forgiven = case when action = 'resume' then j.attempt else j.forgiven end,
            max_attempts = case when action = 'resume' then j.max_attempts + j.attempt - j.forgiven
                                else j.max_attempts end,
            last_outcome = null,
            log = null,
            parked = false,
            behind = false
        where j.id = wanted;
    insert into {schema}.count_changes (pending, queued, paused, failed, canceled)
        select (effect = 'pending')::int - (job.state = 'pending')::int, (effect = 'queued')::int - (job.state = 'queued')::int,
               (effect = 'paused')::int - (job.state = 'paused')::int, (effect = 'failed')::int - (job.state = 'failed')::int,
               (effect = 'canceled')::int - (job.state = 'canceled')::int;
    perform {schema}.tell_control(case when effect in ('canceled', 'paused') then 'job.' || effect
                                       when action = 'resume' then 'job.resumed' else 'job.released' end, wanted);
    if effect = 'queued' then
        perform pg_notify('{channel}', '');
    end if;
    perform {schema}.hand_over(array[job.target], true) where job.target is not null;
end $$;

-- Tells what was done to one job that nobody holds, and makes the message of its end.
create function {schema}.tell_control(event text, wanted bigint) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into {schema}.event_drafts (type, job_ids, kinds, targets, attempts, common)
    select event, array[j.id], array[j.kind], case when j.target is not null then array[j.target] end,
           case when event in ('job.canceled', 'job.paused') and j.attempt > 0 then array[j.attempt] end,
           case when event in ('job.canceled', 'job.paused') then jsonb_build_object('reason', j.reason) end
    from {schema}.job_rows j where j.id = wanted;
    perform {schema}.call_out(j.id, j.kind, event, j.attempt, j.webhook) from {schema}.job_rows j
        where j.id = wanted and event = 'job.canceled';
end $$;

revoke execute on all functions in schema {schema} from public;
