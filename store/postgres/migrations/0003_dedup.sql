-- keys against doubles: at most one job holds a key

-- `until` null = the key is held until its job has ended. A row whose job is gone or has ended holds nothing.
create table {schema}.dedup_keys (
    key    text primary key,
    job_id bigint not null,
    until  timestamptz
);

-- The job that holds a key, or null. Locks the key to the end of the transaction: who comes later waits, and then sees
-- what was decided. The lock is one statement and the look the next, since a statement that has waited still sees the past.
create function {schema}.key_holder(wanted text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    held record;
begin
    insert into {schema}.dedup_keys (key, job_id) values (wanted, 0) on conflict do nothing;
    perform from {schema}.dedup_keys k where k.key = wanted for update;
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

-- Makes these jobs; in place of one whose key is held it gives the job that holds it. `scopes`: until_finished, forever,
-- or a number of seconds.
create function {schema}.enqueue_keyed(kinds text[], payloads text[], priorities smallint[], delays float8[],
    run_ats timestamptz[], max_attempts integer[], holds boolean[], keys text[], scopes text[])
    returns table (id bigint, is_new boolean)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    job record;
begin
    -- All keys in their order first, so that two callers never wait for each other.
    perform {schema}.key_holder(k.key) from (
        select distinct key from unnest(keys) key where key is not null order by key) k;
    for job in select * from unnest(kinds, payloads, priorities, delays, run_ats, max_attempts, holds, keys, scopes)
        with ordinality as j (kind, payload, priority, delay_seconds, run_at, max_attempts, hold, key, scope, place)
        order by place
    loop
        id := case when job.key is not null then {schema}.key_holder(job.key) end;
        is_new := id is null;
        if is_new then
            insert into {schema}.job_rows as made (kind, payload, priority, run_at, max_attempts, state, dedup_key)
            values (job.kind, job.payload::jsonb, job.priority,
                    coalesce(job.run_at, statement_timestamp() + make_interval(secs => coalesce(job.delay_seconds, 0))),
                    job.max_attempts, case when job.hold then 'pending' else 'queued' end, job.key)
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

revoke execute on all functions in schema {schema} from public;
