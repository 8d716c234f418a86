-- The log of events, and exact counts that cost the same for ten jobs and ten million.

-- Events are drafted in the transaction that makes them true, in no order. A row has the events of one type and one
-- statement: an array holds a value for each event, or a single one that all share; null = none has any. Where one row says
-- it all, it also has what its statement changes in the counts: a row of count_changes would cost as much again.
create table {schema}.event_drafts (
    id        bigint generated always as identity primary key,
    at        timestamptz not null default clock_timestamp(),
    size      integer not null default 1,
    enqueued  integer,
    queued    integer,
    succeeded integer,
    type      text not null,
    job_ids   bigint[],
    kinds     text[],
    targets   text[],
    attempts  integer[],
    workers   integer[],
    common    jsonb,     -- the data that all of them share
    details   jsonb[]    -- the data of each
);
alter table {schema}.event_drafts set (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);

-- The log: drafts in the order in which readers meet them, which never changes behind a reader. A row has the positions
-- last - size + 1 to last. `ats` = when each of them was; null = all at once, at `at`, which else is the last of them.
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
    details  jsonb[],
    ats      timestamptz[]
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
-- that was committed between them. Neighbours with one event each that are alike become one row: jobs that come one by one
-- would else take as much room in the log as in their table.
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
    counted as (
        insert into {schema}.count_changes (enqueued, queued, succeeded)
        select coalesce(sum(enqueued), 0), coalesce(sum(queued), 0), coalesce(sum(succeeded), 0)
        from taken where coalesce(enqueued, queued, succeeded) is not null having count(*) > 0
    ),
    sorted as (
        select *, size = 1 and job_ids is not null as is_single,
               row_number() over (order by id) - row_number() over alike as run
        from taken
        window alike as (partition by size, type, common, targets is null, attempts is null, workers is null, details is null
                         order by id)
    ),
    merged as (
        select id, at, type, size, job_ids, kinds, targets, attempts, workers, common, details, null::timestamptz[] as ats
        from sorted where not is_single
      union all
        select min(id), max(at), type, count(*)::integer, array_agg(job_ids[1] order by id),
               case when min(kinds[1] collate "C") = max(kinds[1] collate "C") then array[min(kinds[1])]
                   else array_agg(kinds[1] order by id) end,
               case when count(targets) > 0 then array_agg(targets[1] order by id) end,
               case when count(attempts) > 0 then array_agg(attempts[1] order by id) end,
               case when count(workers) > 0 then array_agg(workers[1] order by id) end, common,
               case when count(details) > 0 then array_agg(details[1] order by id) end,
               case when count(*) > 1 then array_agg(at order by id) end
        from sorted where is_single
        group by run, type, common, targets is null, attempts is null, workers is null, details is null
    ),
    logged as (
        insert into {schema}.event_log (last, at, type, size, job_ids, kinds, targets, attempts, workers, common, details, ats)
        select newest + sum(size) over (order by id), at, type, size, job_ids, kinds, targets, attempts, workers, common, details,
            ats
        from merged returning last
    )
    update {schema}.event_head head set last = ended.last
    from (select max(last) as last from logged) ended where ended.last is not null
    returning head.last into newest;
    return coalesce(newest, (select last from {schema}.event_head));
end $$;

-- A time as the data of an event have it.
create function {schema}.time_text(at timestamptz) returns text
    language sql stable set search_path = pg_catalog, pg_temp as $$
    select to_char(at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- What the event of a new job says of its place in the order of claims, where it is not due yet or has a priority.
create function {schema}.place_data(run_at timestamptz, priority smallint, moment timestamptz) returns jsonb
    language sql stable set search_path = pg_catalog, pg_temp as $$
    select jsonb_strip_nulls(jsonb_build_object('run_at', case when run_at > moment then {schema}.time_text(run_at) end,
                                                'priority', nullif(priority, 0)))
$$;

-- An error as the log has it: at most 1,000 characters of its message, which the job has in full.
create function {schema}.short_error(error jsonb) returns jsonb
    language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case when char_length(error ->> 'message') > 1000
                then jsonb_set(error, '{message}', to_jsonb(left(error ->> 'message', 1000))) else error end
$$;

-- Each statement that moves jobs adds one row of changes, or says them in its draft. They are folded into job_counts now and
-- then. Leased jobs (assigned, running) are few and are counted where they are.
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

-- The counts as they are at this moment.
create view {schema}.kept_counts as
select sum(enqueued)::bigint as enqueued, sum(pending)::bigint as pending, sum(queued)::bigint as queued,
       sum(paused)::bigint as paused, sum(succeeded)::bigint as succeeded, sum(failed)::bigint as failed,
           sum(canceled)::bigint as canceled
from (select enqueued, pending, queued, paused, succeeded, failed, canceled from {schema}.job_counts
    union all
      select enqueued, pending, queued, paused, succeeded, failed, canceled from {schema}.count_changes
    union all
      select coalesce(enqueued, 0), 0, coalesce(queued, 0), 0, coalesce(succeeded, 0), 0, 0 from {schema}.event_drafts
      where coalesce(enqueued, queued, succeeded) is not null) each;

-- Where nodes listen for hints. Any role may notify and none can be kept from it, so the name is not to be guessed: it is made
-- with the store, read by each node at its start, and shown to nobody who may not read this table.
create table {schema}.hint_channel (
    only_row boolean primary key default true check (only_row),
    name     text not null default 'musterd_' || replace(gen_random_uuid()::text, '-', '')
);
insert into {schema}.hint_channel default values;

-- Says to the nodes that there may be new work (an empty text), or what else store/postgres/hints.py knows.
create function {schema}.hint(said text) returns void
    language sql set search_path = pg_catalog, pg_temp as $$
    select pg_notify(channel.name, said) from {schema}.hint_channel channel
$$;

-- Tells programs that wait for the end of a job, on a channel of their own: nodes need not hear it. A job that nobody awaits
-- costs its end no more than the condition.
create function {schema}.publish_end() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_notify(channel.name || '_ended', new.id::text) from {schema}.hint_channel channel;
    return null;
end $$;

create trigger job_rows_publish_end after update of state on {schema}.job_rows for each row
    when (new.awaited and new.state <> old.state and new.state in ('succeeded', 'failed', 'canceled'))
    execute function {schema}.publish_end();
