-- The log of events, and exact counts that cost the same for ten jobs and ten million.

-- Events are drafted in the transaction that makes them true, in no order. A row has the events of one type and one
-- statement: an array holds a value for each event, or a single one that all share; null = none has any.
create table {schema}.event_drafts (
    id       bigint generated always as identity primary key,
    at       timestamptz not null default clock_timestamp(),
    type     text not null,
    size     integer not null default 1,
    job_ids  bigint[],
    kinds    text[],
    targets  text[],
    attempts integer[],
    workers  integer[],
    common   jsonb,     -- the data that all of them share
    details  jsonb[]    -- the data of each
);
alter table {schema}.event_drafts set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);

-- The log: drafts in the order in which readers meet them, which never changes behind a reader. A row has the positions
-- last - size + 1 to last.
create table {schema}.event_log (
    last     bigint primary key,
    at       timestamptz not null,
    type     text not null,
    size     integer not null,
    job_ids  bigint[],
    kinds    text[],
    targets  text[],
    attempts integer[],
    workers  integer[],
    common   jsonb,
    details  jsonb[]
);

-- The lists of jobs are long and are written twice. lz4 costs a tenth of the default compression; servers that were built
-- without it keep the default.
do $$
declare
    column_name text;
    table_name text;
begin
    foreach table_name in array array['event_drafts', 'event_log'] loop
        foreach column_name in array array['job_ids', 'attempts', 'workers', 'targets', 'details'] loop
            execute format('alter table {schema}.%I alter column %I set compression lz4', table_name, column_name);
        end loop;
    end loop;
exception when feature_not_supported then
    null;
end $$;

-- Holding this row is the right to order drafts.
create table {schema}.event_head (
    only_row boolean primary key default true check (only_row),
    last     bigint not null default 0
);
insert into {schema}.event_head default values;

-- Moves committed drafts into the log, at most `batch` of them, in the order of their ids; returns the newest position. The
-- lock is one statement and the move the next, which therefore sees all that was committed before it had the lock. The
-- drafts of one job have the order of its changes, because each is made under the lock of the job's row.
-- One statement finds and takes the drafts: if there were two, a later draft of a job could be taken without an earlier one
-- that was committed between them.
create function {schema}.order_events(batch integer) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    newest bigint;
begin
    if not exists (select from {schema}.event_drafts) then
        return (select last from {schema}.event_head);
    end if;
    select last into newest from {schema}.event_head for update;
    with first_ones as materialized (
        select min(id) as low, max(id) as high
        from (select id from {schema}.event_drafts order by id limit batch) ordered
    ),
    taken as (
        delete from {schema}.event_drafts
        where id between (select low from first_ones) and (select high from first_ones)
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

-- An error as the log has it: at most 1,000 characters of its message, which the job has in full.
create function {schema}.short_error(error jsonb) returns jsonb
    language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case when char_length(error ->> 'message') > 1000
                then jsonb_set(error, '{message}', to_jsonb(left(error ->> 'message', 1000))) else error end
$$;

-- Each statement that moves jobs adds one row of changes, folded into job_counts now and then. Leased jobs (assigned,
-- running) are few and are counted where they are.
create table {schema}.job_counts (
    only_row boolean primary key default true check (only_row),
    enqueued bigint not null default 0,
    pending bigint not null default 0, queued    bigint not null default 0, paused   bigint not null default 0,
    succeeded bigint not null default 0, failed  bigint not null default 0, canceled bigint not null default 0
);
insert into {schema}.job_counts default values;

create table {schema}.count_changes (
    enqueued integer not null default 0,
    pending integer not null default 0, queued    integer not null default 0, paused   integer not null default 0,
    succeeded integer not null default 0, failed  integer not null default 0, canceled integer not null default 0
);
alter table {schema}.count_changes set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);

-- New jobs are counted, logged (at most a thousand in one row) and hinted at.
create function {schema}.note_new_jobs() returns trigger
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
        -- One hint at a time is enough: a transaction that finds another one about to hint leaves it to that one,
        -- so that concurrent commits do not queue up behind each other's notifications.
        if pg_try_advisory_xact_lock(1836413797, hashtext('{schema_name}')) then
            perform pg_notify('{channel}', '');
        end if;
    end if;
    return null;
end $$;

create trigger job_rows_arrived after insert on {schema}.job_rows
    referencing new table as new_rows for each statement
    execute function {schema}.note_new_jobs();
