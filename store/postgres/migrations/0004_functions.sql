-- what any program may call, in its own transaction: enqueue, enqueue_many, cancel, pause, resume, release, clear

create view {schema}.jobs_without_payload as
select id, kind, state, error ->> 'type' as error_type, reason, priority, attempt, max_attempts,
       created_at, run_at, started_at, finished_at,
       case when state in ('assigned', 'running') then node || coalesce('/' || worker, '') end as lease_owner,
       lease_expires_at, heartbeat_at, request is not distinct from 'cancel' as cancel_requested,
       case state when 'succeeded' then 100 else coalesce(floor(progress + 0.5)::int, 0) end as progress,
       cleared_at
from {schema}.job_rows;

create function {schema}.refuse_option(message text, hint text default '') returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception '%', message using errcode = 'invalid_parameter_value', hint = hint;
end $$;

-- Refuses what no job can have, in the words of store/asking.py. Options that are absent or null are not asked for.
create function {schema}.check_job(job jsonb) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    unknown text;
begin
    if jsonb_typeof(job) is distinct from 'object' then
        perform {schema}.refuse_option(format('found %s, wanted an object with kind, payload and options', coalesce(jsonb_typeof(job), 'null')));
    end if;
    select key into unknown from jsonb_object_keys(job) key
        where key not in ('kind', 'payload', 'priority', 'run_at', 'delay_seconds', 'dedup_key', 'dedup_scope', 'hold', 'max_attempts')
        order by key limit 1;
    if unknown is not null then
        perform {schema}.refuse_option(format('unknown option %s', quote_literal(unknown)),
            'options are payload, priority, run_at, delay_seconds, dedup_key, dedup_scope, hold, max_attempts');
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
    if job ->> 'dedup_scope' is not null and job ->> 'dedup_scope' not in ('until_finished', 'forever')
        and (job ->> 'dedup_scope' !~ '^[0-9]{1,10}([.][0-9]{1,9})?$' or (job ->> 'dedup_scope')::numeric not between 0 and 3153600000) then
        perform {schema}.refuse_option(format('dedup_scope: found %s, wanted until_finished, forever, or 0 to 3153600000 seconds', job ->> 'dedup_scope'));
    end if;
    if job ->> 'dedup_scope' is not null and job ->> 'dedup_key' is null then
        perform {schema}.refuse_option('dedup_scope: found without dedup_key', 'give both of them');
    end if;
end $$;

create function {schema}.check_whole(option text, value jsonb, smallest integer, largest integer) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if coalesce(jsonb_typeof(value), 'null') = 'null' then
        return;
    end if;
    if jsonb_typeof(value) <> 'number' or value::text !~ '^-?[0-9]{1,20}$' or value::numeric not between smallest and largest then
        perform {schema}.refuse_option(format('%s: found %s, wanted a whole number, %s to %s', option, value #>> '{}', smallest, largest));
    end if;
end $$;

-- Jobs of one call, checked, made as enqueue_keyed makes them; their order is kept.
create function {schema}.enqueue_many(jobs jsonb) returns setof bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if jsonb_typeof(jobs) is distinct from 'array' then
        perform {schema}.refuse_option(format('jobs: found %s, wanted an array of objects', coalesce(jsonb_typeof(jobs), 'null')));
    end if;
    perform {schema}.check_job(job) from jsonb_array_elements(jobs) job;
    if not jsonb_path_exists(jobs, '$[*].dedup_key ? (@ != null)') then
        return query
        insert into {schema}.job_rows (kind, payload, priority, run_at, max_attempts, state)
        select job ->> 'kind', coalesce(job -> 'payload', '{}'), coalesce((job ->> 'priority')::smallint, 0),
               coalesce((job ->> 'run_at')::timestamptz,
                        statement_timestamp() + make_interval(secs => coalesce((job ->> 'delay_seconds')::float8, 0))),
               (job ->> 'max_attempts')::integer,
               case when (job ->> 'hold')::boolean then 'pending' else 'queued' end
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
        array(select coalesce(job ->> 'dedup_scope', 'until_finished') from jsonb_array_elements(jobs) job)) made;
end $$;

create function {schema}.enqueue(
    kind text, payload jsonb default '{}', priority integer default 0, run_at timestamptz default null,
    delay_seconds float8 default null, dedup_key text default null, dedup_scope text default null,
    hold boolean default false, max_attempts integer default null)
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
        'hold', enqueue.hold, 'max_attempts', enqueue.max_attempts))));
end $$;

-- As the command of that name; the words are those of store/report.py. Gives the state that the job is in now.
create function {schema}.control_or_refuse(action text, wanted bigint) returns text
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    done record;
    states text[];
begin
    select * into done from {schema}.control_job(action, wanted);
    if done.allowed then
        return done.state_after;
    elsif not done.known then
        raise exception 'there is no job %', wanted using errcode = 'no_data_found';
    end if;
    states := array(
        select s from unnest(array['pending', 'queued', 'paused', 'assigned', 'running', 'failed']) with ordinality as o (s, place)
        where {schema}.control_effect(action, s) is not null order by place);
    if done.state_before = any (states) then
        raise exception 'job % is % and is being canceled: it cannot be told to %', wanted, done.state_before, action
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    raise exception 'job % is %: % wants a job that is %', wanted, done.state_before, action,
        concat_ws(' or ', nullif(array_to_string(states[:cardinality(states) - 1], ', '), ''), states[cardinality(states)])
        using errcode = 'object_not_in_prerequisite_state';
end $$;

create function {schema}.cancel(id bigint) returns text language sql security definer set search_path = pg_catalog, pg_temp
    as $$ select {schema}.control_or_refuse('cancel', $1) $$;
create function {schema}.pause(id bigint) returns text language sql security definer set search_path = pg_catalog, pg_temp
    as $$ select {schema}.control_or_refuse('pause', $1) $$;
create function {schema}.resume(id bigint) returns text language sql security definer set search_path = pg_catalog, pg_temp
    as $$ select {schema}.control_or_refuse('resume', $1) $$;
create function {schema}.release(id bigint) returns text language sql security definer set search_path = pg_catalog, pg_temp
    as $$ select {schema}.control_or_refuse('release', $1) $$;
create function {schema}.clear(id bigint) returns text language sql security definer set search_path = pg_catalog, pg_temp
    as $$ select {schema}.control_or_refuse('clear', $1) $$;

revoke execute on all functions in schema {schema} from public;
