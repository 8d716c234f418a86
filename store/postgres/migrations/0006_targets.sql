-- targets: jobs of one target run one at a time, in order

alter table {schema}.job_rows
    add column target text,
    add column behind boolean not null default false,
    add constraint target_is_short check (char_length(target) between 1 and 200),
    add constraint only_waiting_jobs_stand_behind check (not behind or (state = 'queued' and target is not null));

-- The law: whatever the claims do, no two jobs of a target are leased at once.
create unique index job_rows_one_a_target on {schema}.job_rows (target)
    where target is not null and state in ('assigned', 'running');

-- What stands behind another job of its target is in no claim's way.
create index job_rows_behind on {schema}.job_rows (target, priority desc, run_at, id) where behind;
-- What does not: in order within its target, so that a claim sees what another has in hand.
create index job_rows_in_line on {schema}.job_rows (target, priority desc, run_at, id)
    where target is not null and state = 'queued' and not parked and not behind;

create index job_rows_halting on {schema}.job_rows (target, id)
    where target is not null and (state = 'paused' or state = 'failed' and cleared_at is null);

-- Which job has the target to itself: it is leased, or waits for its retry, or halts the target (paused, failed),
-- or is the next and not yet claimed (reserved). A target without a row is free, and nothing stands behind.
create table {schema}.target_holders (
    target   text primary key,
    job_id   bigint not null,
    reserved boolean not null default false
) with (fillfactor = 50);

-- The claim walks this index: what stands behind is not in its way.
drop index {schema}.job_rows_claim;
create index job_rows_claim on {schema}.job_rows (priority desc, run_at, id)
    where state = 'queued' and not parked and not behind;

create or replace view {schema}.queue_depth as
select count(*) as queued,
       count(*) filter (where claimable and run_at <= clock_timestamp()) as due,
       coalesce(extract(epoch from clock_timestamp()
           - min(run_at) filter (where claimable and run_at <= clock_timestamp())), 0) as oldest_due_seconds
from (select run_at, true as claimable from {schema}.job_rows where state = 'queued' and not parked and not behind
      union all select run_at, true from {schema}.job_rows where parked
      union all select run_at, false from {schema}.job_rows where behind) waiting;

create or replace view {schema}.jobs as
select id, kind, state, payload, result, error, reason, priority, attempt, max_attempts,
       created_at, run_at, started_at, finished_at,
       case when state in ('assigned', 'running') then node || coalesce('/' || worker, '') end as lease_owner,
       lease_expires_at, heartbeat_at,
       dedup_key,
       request is not distinct from 'cancel' as cancel_requested,
       jsonb_build_object(
           'overall', case state when 'succeeded' then 100 else coalesce(floor(progress + 0.5)::int, 0) end,
           'phase', null, 'phases', '[]'::jsonb, 'note', progress_note) as progress,
       cleared_at, target
from {schema}.job_rows;

create or replace view {schema}.jobs_without_payload as
select id, kind, state, error ->> 'type' as error_type, reason, priority, attempt, max_attempts,
       created_at, run_at, started_at, finished_at,
       case when state in ('assigned', 'running') then node || coalesce('/' || worker, '') end as lease_owner,
       lease_expires_at, heartbeat_at, request is not distinct from 'cancel' as cancel_requested,
       case state when 'succeeded' then 100 else coalesce(floor(progress + 0.5)::int, 0) end as progress,
       cleared_at, target
from {schema}.job_rows;

-- As in the first migration, and the name of a target is as short as that of a kind is.
create or replace function {schema}.refuse_new_job() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if new.state not in ('pending', 'queued') or new.attempt <> 0 then
        raise exception 'a new job is pending or queued and has attempt 0, this one is % with attempt %', new.state, new.attempt
            using errcode = 'check_violation';
    elsif char_length(new.kind) not between 1 and 100 then
        raise exception 'the name of a kind has 1 to 100 characters, this one has %', char_length(new.kind)
            using errcode = 'check_violation';
    elsif char_length(new.target) not between 1 and 200 then
        raise exception 'the name of a target has 1 to 200 characters, this one has %', char_length(new.target)
            using errcode = 'check_violation';
    elsif new.max_attempts < 1 then
        raise exception 'max_attempts is %, wanted 1 or more', new.max_attempts using errcode = 'check_violation';
    elsif pg_column_size(new.payload) > 1048576 then
        raise exception 'the payload takes % bytes, at most 1048576 are allowed', pg_column_size(new.payload)
            using errcode = 'check_violation';
    elsif jsonb_path_exists(new.payload, '$.**{65}') then
        raise exception 'the payload is nested more than 64 deep' using errcode = 'check_violation';
    else
        raise exception 'the payload holds a number beyond double precision' using errcode = 'check_violation';
    end if;
end $$;

drop trigger job_rows_accept on {schema}.job_rows;
create trigger job_rows_accept before insert on {schema}.job_rows for each row
    when (new.state not in ('pending', 'queued') or new.attempt <> 0
        or char_length(new.kind) not between 1 and 100 or new.max_attempts < 1
        or char_length(new.target) not between 1 and 200
        or pg_column_size(new.payload) > 1048576
        or (pg_column_size(new.payload) > 400 and jsonb_path_exists(new.payload, '$.**{65}'))
        or ((pg_column_size(new.payload) > 400 or octet_length(new.payload::text) > 308)
            and jsonb_path_exists(new.payload,
                '$.** ? (@ > 1.7976931348623157e308 || @ < -1.7976931348623157e308)')))
    execute function {schema}.refuse_new_job();

-- Passes a target on, if the job that has it has ended. The first that halts it comes next, else the first in claim
-- order of those that wait; if there is none the target is free. Says whether a job became claimable.
-- Locks the holder's row, then jobs: whoever waits for locks takes them in this order. Each look is a statement of its
-- own, which sees what was committed while the lock was waited for. Idempotent: may be called at any time.
create function {schema}.pass_on(wanted text) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    holder record;
    held record;
    next_id bigint;
    next_priority integer;
    next_run_at timestamptz;
    halted boolean;
begin
    select h.job_id, h.reserved into holder from {schema}.target_holders h where h.target = wanted for update;
    if not found then
        return false;
    end if;
    select j.id, j.state, j.priority::integer, j.run_at into held from {schema}.job_rows j
        where j.id = holder.job_id and j.target = wanted
          and (j.state in ('queued', 'assigned', 'running', 'paused') or j.state = 'failed' and j.cleared_at is null);
    if held.id is not null and not (holder.reserved and held.state in ('queued', 'paused', 'failed')) then
        return false;
    end if;
    -- A row that was changed while it was waited for is left out of the answer: then it is asked again.
    loop
        select j.id into next_id from {schema}.job_rows j
            where j.target = wanted and (j.state = 'paused' or j.state = 'failed' and j.cleared_at is null)
            order by j.id limit 1 for no key update;
        halted := found;
        exit when found or not exists (
            select from {schema}.job_rows j
            where j.target = wanted and (j.state = 'paused' or j.state = 'failed' and j.cleared_at is null));
    end loop;
    while not halted loop
        select j.id, j.priority, j.run_at into next_id, next_priority, next_run_at from {schema}.job_rows j
            where j.behind and j.target = wanted
            order by j.priority desc, j.run_at, j.id limit 1 for no key update;
        exit when found or not exists (select from {schema}.job_rows j where j.behind and j.target = wanted);
    end loop;
    if held.state = 'queued' then
        if not halted and (next_id is null
            or (-held.priority, held.run_at, held.id) < (-next_priority, next_run_at, next_id)) then
            return false;
        end if;
        update {schema}.job_rows j set behind = true, parked = false where j.id = held.id;
    end if;
    if next_id is null then
        delete from {schema}.target_holders h where h.target = wanted;
        return false;
    end if;
    update {schema}.target_holders h set job_id = next_id, reserved = true where h.target = wanted;
    update {schema}.job_rows j set behind = false where j.id = next_id and j.behind;
    return not halted;
end $$;

-- The same for several targets, in the order in which they are given; whoever waits for several takes them in this
-- order, sorted. Says how many jobs became claimable, and tells so to idle nodes if it is to ring.
create function {schema}.hand_over(targets text[], ring boolean) returns integer
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    one text;
    freed integer := 0;
begin
    foreach one in array targets loop
        freed := freed + {schema}.pass_on(one)::integer;
    end loop;
    if ring and freed > 0 then
        perform pg_notify('{channel}', '');
    end if;
    return freed;
end $$;

-- Locks a job to act on it, and before it the row of whoever has its target.
create function {schema}.lock_job(wanted bigint,
    out state text, out request text, out last_outcome text, out target text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    taken boolean;
begin
    select j.target into target from {schema}.job_rows j where j.id = wanted;
    loop
        perform from {schema}.target_holders h where h.target = lock_job.target for update;
        taken := found;
        begin
            select j.state, j.request, j.last_outcome into state, request, last_outcome from {schema}.job_rows j
                where j.id = wanted for no key update;
            exit when taken or target is null
                or not exists (select from {schema}.target_holders h where h.target = lock_job.target);
            -- Somebody took the target while the job was waited for: let the job go, and begin with the target again.
            raise exception using errcode = 'MU001';
        exception when sqlstate 'MU001' then
            null;
        end;
    end loop;
end $$;

-- As in the fifth migration, and a job that held its target passes it on.
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
        update {schema}.job_rows j set cleared_at = coalesce(j.cleared_at, moment) where j.id = wanted;
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
    if effect = 'queued' then
        perform pg_notify('{channel}', '');
    end if;
    perform {schema}.hand_over(array[job.target], true) where job.target is not null;
end $$;

-- Making jobs, as before and with a target. `enqueue` has one argument more, so it is another function: whoever may
-- call the one may call the other.
drop function {schema}.enqueue_keyed(text[], text[], smallint[], float8[], timestamptz[], integer[], boolean[], text[], text[]);
create function {schema}.enqueue_keyed(kinds text[], payloads text[], priorities smallint[], delays float8[],
    run_ats timestamptz[], max_attempts integer[], holds boolean[], keys text[], scopes text[],
    targets text[])
    returns table (id bigint, is_new boolean)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    job record;
begin
    -- All keys in their order first, so that two callers never wait for each other.
    perform {schema}.key_holder(k.key) from (
        select distinct key from unnest(keys) key where key is not null order by key) k;
    for job in select * from unnest(kinds, payloads, priorities, delays, run_ats, max_attempts, holds, keys, scopes, targets)
        with ordinality as j (kind, payload, priority, delay_seconds, run_at, max_attempts, hold, key, scope, target, place)
        order by place
    loop
        id := case when job.key is not null then {schema}.key_holder(job.key) end;
        is_new := id is null;
        if is_new then
            insert into {schema}.job_rows as made (kind, payload, priority, run_at, max_attempts, state, dedup_key, target)
            values (job.kind, job.payload::jsonb, job.priority,
                    coalesce(job.run_at, statement_timestamp() + make_interval(secs => coalesce(job.delay_seconds, 0))),
                    job.max_attempts, case when job.hold then 'pending' else 'queued' end, job.key, job.target)
            returning made.id into id;
            if job.scope <> 'until_finished' then
                update {schema}.dedup_keys k
                set until = case job.scope when 'forever' then 'infinity'
                                 else clock_timestamp() + make_interval(secs => job.scope::float8) end
                where k.key = job.key;
            end if;
        end if;
        return next;
    end loop;
end $$;

create or replace function {schema}.check_job(job jsonb) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    unknown text;
begin
    if jsonb_typeof(job) is distinct from 'object' then
        perform {schema}.refuse_option(format('found %s, wanted an object with kind, payload and options', coalesce(jsonb_typeof(job), 'null')));
    end if;
    select key into unknown from jsonb_object_keys(job) key
        where key not in ('kind', 'payload', 'priority', 'run_at', 'delay_seconds', 'dedup_key', 'dedup_scope', 'hold', 'max_attempts', 'target')
        order by key limit 1;
    if unknown is not null then
        perform {schema}.refuse_option(format('unknown option %s', quote_literal(unknown)),
            'options are payload, priority, run_at, delay_seconds, dedup_key, dedup_scope, hold, max_attempts, target');
    end if;
    if jsonb_typeof(job -> 'kind') is distinct from 'string' or char_length(job ->> 'kind') not between 1 and 100 then
        perform {schema}.refuse_option(format('kind: found %s, wanted a name of 1 to 100 characters',
            case jsonb_typeof(job -> 'kind') when 'string' then char_length(job ->> 'kind') || ' characters' else coalesce(nullif(job ->> 'kind', ''), 'null') end));
    end if;
    perform {schema}.check_whole('priority', job -> 'priority', -32768, 32767);
    perform {schema}.check_whole('max_attempts', job -> 'max_attempts', 1, 10001);
    if coalesce(jsonb_typeof(job -> 'delay_seconds'), 'null') not in ('null', 'number')
        or (job ->> 'delay_seconds')::numeric not between 0 and 3153600000 then
        perform {schema}.refuse_option(format('delay_seconds: found %s, wanted 0 to 3153600000 seconds', job ->> 'delay_seconds'));
    end if;
    if coalesce(jsonb_typeof(job -> 'hold'), 'null') not in ('null', 'boolean') then
        perform {schema}.refuse_option(format('hold: found %s, wanted true or false', job ->> 'hold'));
    end if;
    if job ->> 'run_at' is not null and job ->> 'delay_seconds' is not null then
        perform {schema}.refuse_option('run_at and delay_seconds exclude each other', 'give one of them');
    end if;
    if coalesce(jsonb_typeof(job -> 'dedup_key'), 'null') not in ('null', 'string')
        or char_length(job ->> 'dedup_key') not between 1 and 200 then
        perform {schema}.refuse_option('dedup_key: wanted a text of 1 to 200 characters');
    end if;
    if coalesce(jsonb_typeof(job -> 'target'), 'null') not in ('null', 'string')
        or char_length(job ->> 'target') not between 1 and 200 then
        perform {schema}.refuse_option('target: wanted a text of 1 to 200 characters');
    end if;
    if job ->> 'dedup_scope' is not null and job ->> 'dedup_scope' not in ('until_finished', 'forever')
        and (job ->> 'dedup_scope' !~ '^[0-9]{1,10}([.][0-9]{1,9})?$' or (job ->> 'dedup_scope')::numeric not between 0 and 3153600000) then
        perform {schema}.refuse_option(format('dedup_scope: found %s, wanted until_finished, forever, or 0 to 3153600000 seconds', job ->> 'dedup_scope'));
    end if;
    if job ->> 'dedup_scope' is not null and job ->> 'dedup_key' is null then
        perform {schema}.refuse_option('dedup_scope: found without dedup_key', 'give both of them');
    end if;
end $$;

create or replace function {schema}.enqueue_many(jobs jsonb) returns setof bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if jsonb_typeof(jobs) is distinct from 'array' then
        perform {schema}.refuse_option(format('jobs: found %s, wanted an array of objects', coalesce(jsonb_typeof(jobs), 'null')));
    end if;
    perform {schema}.check_job(job) from jsonb_array_elements(jobs) job;
    if not jsonb_path_exists(jobs, '$[*].dedup_key ? (@ != null)') then
        return query
        insert into {schema}.job_rows (kind, payload, priority, run_at, max_attempts, state, target)
        select job ->> 'kind', coalesce(job -> 'payload', '{}'), coalesce((job ->> 'priority')::smallint, 0),
               coalesce((job ->> 'run_at')::timestamptz,
                        statement_timestamp() + make_interval(secs => coalesce((job ->> 'delay_seconds')::float8, 0))),
               (job ->> 'max_attempts')::integer,
               case when (job ->> 'hold')::boolean then 'pending' else 'queued' end, job ->> 'target'
        from jsonb_array_elements(jobs) with ordinality as given (job, place) order by place
        returning job_rows.id;
        return;
    end if;
    return query
    select made.id from {schema}.enqueue_keyed(
        array(select job ->> 'kind' from jsonb_array_elements(jobs) job),
        array(select coalesce(job -> 'payload', '{}')::text from jsonb_array_elements(jobs) job),
        array(select coalesce((job ->> 'priority')::smallint, 0::smallint) from jsonb_array_elements(jobs) job),
        array(select (job ->> 'delay_seconds')::float8 from jsonb_array_elements(jobs) job),
        array(select (job ->> 'run_at')::timestamptz from jsonb_array_elements(jobs) job),
        array(select (job ->> 'max_attempts')::integer from jsonb_array_elements(jobs) job),
        array(select coalesce((job ->> 'hold')::boolean, false) from jsonb_array_elements(jobs) job),
        array(select job ->> 'dedup_key' from jsonb_array_elements(jobs) job),
        array(select coalesce(job ->> 'dedup_scope', 'until_finished') from jsonb_array_elements(jobs) job),
        array(select job ->> 'target' from jsonb_array_elements(jobs) job)) made;
end $$;

alter function {schema}.enqueue(text, jsonb, integer, timestamptz, float8, text, text, boolean, integer) rename to enqueue_before;
create function {schema}.enqueue(
    kind text, payload jsonb default '{}', priority integer default 0, run_at timestamptz default null,
    delay_seconds float8 default null, dedup_key text default null, dedup_scope text default null,
    hold boolean default false, max_attempts integer default null,
    target text default null)
    returns bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    -- Neither is a JSON number, and to_jsonb would make a text of it.
    if enqueue.delay_seconds in ('NaN', 'Infinity', '-Infinity') then
        perform {schema}.refuse_option(format('delay_seconds: found %s, wanted 0 to 3153600000 seconds', enqueue.delay_seconds));
    end if;
    return (select {schema}.enqueue_many(jsonb_build_array(jsonb_build_object(
        'kind', enqueue.kind, 'payload', coalesce(enqueue.payload, '{}'), 'priority', enqueue.priority, 'run_at', enqueue.run_at,
        'delay_seconds', enqueue.delay_seconds, 'dedup_key', enqueue.dedup_key, 'dedup_scope', enqueue.dedup_scope,
        'hold', enqueue.hold, 'max_attempts', enqueue.max_attempts, 'target', enqueue.target))));
end $$;

do $$
declare
    caller record;
begin
    for caller in
        select r.rolname from pg_proc p, aclexplode(p.proacl) granted join pg_roles r on r.oid = granted.grantee
        where p.pronamespace = '{schema}'::regnamespace and p.proname = 'enqueue_before'
          and granted.privilege_type = 'EXECUTE' and granted.grantee <> p.proowner
    loop
        execute format('grant execute on function {schema}.enqueue to %I', caller.rolname);
    end loop;
end $$;
drop function {schema}.enqueue_before;

revoke execute on all functions in schema {schema} from public;
