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
               case when min(kinds[1] collate "C") = max(kinds[1] collate "C") then array[min(kinds[1])] else array_agg(kinds[1] order by id) end,
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
        select newest + sum(size) over (order by id), at, type, size, job_ids, kinds, targets, attempts, workers, common, details, ats
        from merged returning last
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
       sum(paused)::bigint as paused, sum(succeeded)::bigint as succeeded, sum(failed)::bigint as failed, sum(canceled)::bigint as canceled
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

-- New jobs come into the order of claims, and are counted, logged (at most a thousand in one row) and hinted at.
create function {schema}.note_new_jobs() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    arrived record;
    held integer;
    stretch integer;  -- jobs in one: a small batch is cut finer, so that several nodes may take from it at once
    pending constant jsonb := '{"state": "pending"}';
    channel text;
begin
    select count(*)::integer as number, count(*) filter (where state = 'pending')::integer as held, count(target) as targets,
           min(id) as first_id, max(id) as last_id,
           min(kind collate "C") as kind, max(kind collate "C") as last_kind,
           min(priority) as priority, max(priority) as highest, min(run_at) as run_at, max(run_at) as latest
        into arrived from new_rows;
    if arrived.number > 0 then
        held := arrived.held;
        stretch := least(64, greatest(1, arrived.number / 16));
        if arrived.number = 1 then
            with one as materialized (select id, run_at, priority, state, kind, target from new_rows),
            placed as (
                insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
                select priority, run_at, id, id, kind, target from one where state = 'queued'
            ),
            counted as (
                insert into {schema}.count_changes (pending) select held where held = 1
            )
            insert into {schema}.event_drafts (enqueued, queued, type, job_ids, kinds, targets, common)
            select 1, 1 - held, 'job.enqueued', array[id], array[kind], case when target is not null then array[target] end,
                   case held when 1 then pending end
            from one;
        else
            insert into {schema}.count_changes (enqueued, pending, queued) values (arrived.number, held, arrived.number - held);
            if held = 0 and arrived.targets = 0 and arrived.kind = arrived.last_kind and arrived.priority = arrived.highest
                and arrived.run_at = arrived.latest and arrived.last_id - arrived.first_id + 1 = arrived.number then
                insert into {schema}.ready (priority, run_at, first_id, last_id, kind)
                select arrived.priority, arrived.run_at, first_id, least(arrived.last_id, first_id + stretch - 1), arrived.kind
                from generate_series(arrived.first_id, arrived.last_id, stretch) as part (first_id);
            else
                insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
                select priority, run_at, min(id), max(id), kind, target
                from (select priority, run_at, kind, target, id, case when target is not null then id end as alone,
                             id - row_number() over (partition by priority, run_at, kind, target order by id) as island
                      from new_rows where state = 'queued') neighbour
                group by priority, run_at, kind, target, alone, island, id / stretch order by min(id);
            end if;
            if arrived.kind = arrived.last_kind and held in (0, arrived.number) then  -- as large batches are
                insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, common)
                select 'job.enqueued', count(*), array_agg(id), array[arrived.kind],
                       case when count(target) > 0 then array_agg(target) end, case when held > 0 then pending end
                from new_rows group by id / 1000 order by min(id);
            else
                insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, common)
                select 'job.enqueued', count(*), array_agg(id), array_agg(kind),
                       case when count(target) > 0 then array_agg(target) end, case state when 'pending' then pending end
                from new_rows group by id / 1000, state order by min(id);
            end if;
        end if;
        -- One hint at a time is enough: a transaction that finds another one about to hint leaves it to that one,
        -- so that concurrent commits do not queue up behind each other's notifications.
        -- The row is this schema's own: whoever might keep a lock that all may take, could keep all nodes from being told.
        select name into channel from {schema}.hint_channel for update skip locked;
        if found then
            perform pg_notify(channel, '');
        end if;
    end if;
    return null;
end $$;

create trigger job_rows_arrived after insert on {schema}.job_rows
    referencing new table as new_rows for each statement
    execute function {schema}.note_new_jobs();
