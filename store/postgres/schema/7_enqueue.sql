-- Enqueueing from any program, in its own transaction; deduplication keys.

-- At most one job holds a key. `until` null = until that job has ended. A row whose job is gone or has ended holds nothing.
create table {schema}.dedup_keys (
    key    text primary key,
    job_id bigint not null,
    until  timestamptz
);
create index dedup_keys_until on {schema}.dedup_keys (until) where until < 'infinity';

-- The job that holds a key, or null. Locks the key to the end of the transaction: later callers wait, and then see what was
-- decided. The lock is one statement and the read the next, because a statement that has waited still sees the past. A key
-- that was deleted while it was waited for is made anew.
create function {schema}.key_holder(wanted text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    held record;
begin
    loop
        insert into {schema}.dedup_keys (key, job_id) values (wanted, 0) on conflict do nothing;
        perform from {schema}.dedup_keys k where k.key = wanted for update;
        exit when found;
    end loop;
    select k.job_id, k.until into held from {schema}.dedup_keys k where k.key = wanted;
    if held.until > clock_timestamp() or held.until is null and exists (
        select from {schema}.job_rows j
        where j.id = held.job_id and j.state not in ('succeeded', 'failed', 'canceled')) then
        return held.job_id;
    end if;
    return null;
end $$;

create function {schema}.take_key() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    holder bigint := {schema}.key_holder(new.dedup_key);
begin
    if holder is not null then
        raise exception 'dedup_key: job % holds the key %', holder, quote_literal(new.dedup_key)
            using errcode = 'unique_violation', hint = 'the function enqueue gives the id of that job instead';
    end if;
    update {schema}.dedup_keys set job_id = new.id, until = null where key = new.dedup_key;
    return new;
end $$;

create trigger job_rows_take_key before insert on {schema}.job_rows for each row
    when (new.dedup_key is not null) execute function {schema}.take_key();

-- Makes these jobs, whose options have been checked; in place of a job whose key is held it returns the job that holds it.
create function {schema}.enqueue_keyed(jobs jsonb[]) returns table (id bigint, is_new boolean)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    job        jsonb;
    wanted_key text;
    scope      text;
begin
    -- All keys in their order first, so that two callers never wait for each other.
    perform {schema}.key_holder(k.key) from (
        select distinct one ->> 'dedup_key' as key from unnest(jobs) one where one ->> 'dedup_key' is not null order by key) k;
    foreach job in array jobs loop
        wanted_key := job ->> 'dedup_key';
        scope := coalesce(job ->> 'dedup_scope', 'until_finished');
        id := case when wanted_key is not null then {schema}.key_holder(wanted_key) end;
        is_new := id is null;
        if is_new then
            insert into {schema}.job_rows as made (kind, payload, priority, run_at, max_attempts, state, dedup_key, target,
                traceparent, webhook)
            values (job ->> 'kind', coalesce(job -> 'payload', '{}'), (job ->> 'priority')::smallint,
                    coalesce((job ->> 'run_at')::timestamptz,
                             statement_timestamp() + make_interval(secs => coalesce((job ->> 'delay_seconds')::float8, 0))),
                    (job ->> 'max_attempts')::integer, case when (job ->> 'hold')::boolean then 'pending' else 'queued' end,
                    wanted_key, job ->> 'target', job ->> 'traceparent', job ->> 'webhook')
            returning made.id into id;
            if scope <> 'until_finished' then
                update {schema}.dedup_keys k
                set until = case scope when 'forever' then 'infinity'
                                 else clock_timestamp() + make_interval(secs => scope::float8) end
                where k.key = wanted_key;
            end if;
        end if;
        return next;
    end loop;
end $$;

create function {schema}.refuse_option(message text, hint text default '') returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception '%', message using errcode = 'invalid_parameter_value', hint = hint;
end $$;

create function {schema}.check_whole(option text, value jsonb, smallest integer, largest integer) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if coalesce(jsonb_typeof(value), 'null') = 'null' then
        return;
    end if;
    if jsonb_typeof(value) <> 'number' or value::text !~ '^-?[0-9]{1,20}$' or value::numeric not between smallest and largest then
        perform {schema}.refuse_option(format('%s: found %s, wanted a whole number, %s to %s', option, value #>> '{}', smallest,
            largest));
    end if;
end $$;

create function {schema}.check_text(option text, value jsonb, longest integer) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if jsonb_typeof(value) <> 'string' or char_length(value #>> '{}') not between 1 and longest then
        perform {schema}.refuse_option(format('%s: wanted a text of 1 to %s characters', option, longest));
    end if;
end $$;

-- In the words of config/webhook_urls.py. The URL may hold a secret, so it is not shown.
create function {schema}.check_webhook(webhook jsonb) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    url text := webhook #>> '{}';
    authority text := substring(url from '^https?://([^/?#]*)');
    port text := substring(authority from ':([^]:]*)$');
begin
    if coalesce(jsonb_typeof(webhook), 'null') = 'null' then
        return;
    elsif jsonb_typeof(webhook) <> 'string' or char_length(url) not between 1 and 2000 then
        perform {schema}.refuse_option('webhook: wanted a URL of 1 to 2000 characters');
    elsif url !~ '^[!-\[\]-~]*$' then
        perform {schema}.refuse_option('webhook: wanted a URL of printable ASCII', 'write other characters as %XX');
    elsif url !~ '^https?://' then
        perform {schema}.refuse_option('webhook: wanted a URL that starts with https://');
    elsif strpos(authority, '@') > 0 then
        perform {schema}.refuse_option('webhook: wanted a URL without user and password', 'what is sent is signed');
    elsif authority !~ '^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?$' then
        perform {schema}.refuse_option('webhook: wanted a URL with a host');
    elsif port is not null and (port !~ '^[0-9]+$' or left(port, 6)::integer not between 1 and 65535) then
        perform {schema}.refuse_option('webhook: wanted a port of 1 to 65535');
    elsif strpos(url, '#') > 0 then
        perform {schema}.refuse_option('webhook: wanted a URL without #', 'what follows # is never sent');
    end if;
end $$;

-- Refuses options that no job can have, in the words of store/input.py. Absent and null options are fine.
create function {schema}.check_job(job jsonb) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    options constant text[] := array['payload', 'priority', 'run_at', 'delay_seconds', 'dedup_key', 'dedup_scope', 'hold',
        'max_attempts', 'target', 'webhook', 'traceparent'];
    unknown text;
begin
    if jsonb_typeof(job) is distinct from 'object' then
        perform {schema}.refuse_option(format('found %s, wanted an object with kind, payload and options',
            coalesce(jsonb_typeof(job), 'null')));
    end if;
    select key into unknown from jsonb_object_keys(job) key
        where key <> all (options) and key not in ('kind', 'tenant')
        order by key limit 1;
    if unknown is not null then
        perform {schema}.refuse_option(format('unknown option %s', quote_literal(unknown)),
            'options are ' || array_to_string(options, ', '));
    end if;
    if jsonb_typeof(job -> 'kind') is distinct from 'string' or char_length(job ->> 'kind') not between 1 and 100 then
        perform {schema}.refuse_option(format('kind: found %s, wanted a name of 1 to 100 characters',
            case jsonb_typeof(job -> 'kind') when 'string' then char_length(job ->> 'kind') || ' characters'
                else coalesce(nullif(job ->> 'kind', ''), 'null') end));
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
    if job ->> 'dedup_key' is not null then perform {schema}.check_text('dedup_key', job -> 'dedup_key', 200); end if;
    if job ->> 'target' is not null then perform {schema}.check_text('target', job -> 'target', 200); end if;
    if job ->> 'traceparent' !~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$' then
        perform {schema}.refuse_option(
            'traceparent: wanted a W3C traceparent, as 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 is');
    end if;
    perform {schema}.check_webhook(job -> 'webhook');
    if job ->> 'tenant' <> (select queue.tenant from {schema}.queue_state queue) then
        perform {schema}.refuse_option(format('tenant: found %s, wanted %s, whose schema this is', job ->> 'tenant',
            (select queue.tenant from {schema}.queue_state queue)), 'call enqueue in the schema of that tenant');
    end if;
    if job ->> 'dedup_scope' is not null and job ->> 'dedup_scope' not in ('until_finished', 'forever')
        and (job ->> 'dedup_scope' !~ '^[0-9]{1,10}([.][0-9]{1,9})?$'
            or (job ->> 'dedup_scope')::numeric not between 0 and 3153600000) then
        perform {schema}.refuse_option(format('dedup_scope: found %s, wanted until_finished, forever, or 0 to 3153600000 seconds',
            job ->> 'dedup_scope'));
    end if;
    if job ->> 'dedup_scope' is not null and job ->> 'dedup_key' is null then
        perform {schema}.refuse_option('dedup_scope: found without dedup_key', 'give both of them');
    end if;
end $$;

-- Checks the jobs of one call and makes them as enqueue_keyed does, in their order.
create function {schema}.enqueue_many(jobs jsonb) returns setof bigint
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if jsonb_typeof(jobs) is distinct from 'array' then
        perform {schema}.refuse_option(format('jobs: found %s, wanted an array of objects', coalesce(jsonb_typeof(jobs), 'null')));
    end if;
    perform {schema}.check_job(job) from jsonb_array_elements(jobs) job;
    if not jsonb_path_exists(jobs, '$[*].dedup_key ? (@ != null)') then
        return query
        insert into {schema}.job_rows (kind, payload, priority, run_at, max_attempts, state, target, traceparent, webhook)
        select job ->> 'kind', coalesce(job -> 'payload', '{}'),
               coalesce((job ->> 'priority')::smallint,
                        (select rule.priority from {schema}.kind_rules rule where rule.kind = job ->> 'kind'), 0),
               coalesce((job ->> 'run_at')::timestamptz,
                        statement_timestamp() + make_interval(secs => coalesce((job ->> 'delay_seconds')::float8, 0))),
               (job ->> 'max_attempts')::integer,
               case when (job ->> 'hold')::boolean then 'pending' else 'queued' end, job ->> 'target', job ->> 'traceparent',
               job ->> 'webhook'
        from jsonb_array_elements(jobs) with ordinality as given (job, place) order by place
        returning job_rows.id;
        return;
    end if;
    return query select made.id from {schema}.enqueue_keyed(array(select job from jsonb_array_elements(jobs) job)) made;
end $$;

create function {schema}.enqueue(
    kind text, payload jsonb default '{}', priority integer default null, run_at timestamptz default null,
    delay_seconds float8 default null, dedup_key text default null, dedup_scope text default null,
    hold boolean default false, max_attempts integer default null,
    target text default null, webhook text default null, tenant text default null, traceparent text default null)
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
        'hold', enqueue.hold, 'max_attempts', enqueue.max_attempts, 'target', enqueue.target,
        'webhook', enqueue.webhook, 'tenant', enqueue.tenant, 'traceparent', enqueue.traceparent))));
end $$;
