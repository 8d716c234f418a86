-- Where jobs stand between their beginning and their end. A queued job stands in exactly one place: `ready` (a claim may take
-- it), `waiting` (parked, or behind another job of its target) or `leases` (in hand). check() in 9_views.sql finds any that
-- does not.
-- Locks are taken in this order: the holder of a target, a lease, a job's row, a stretch. A claim locks stretches alone, and
-- waits for none of them; whoever takes a job out of a stretch holds its row. Several of a sort are taken in the order of
-- their targets, tokens, or ids.

-- What a claim may take, in its order: stretches of neighbouring ids that are alike, at most 64, so that many may claim from
-- one batch at once. Rows are made and deleted, never changed. A job with a target stands by itself.
create table {schema}.ready (
    priority smallint not null,
    run_at   timestamptz not null,
    first_id bigint not null,
    last_id  bigint not null,
    kind     text not null,
    target   text,
    constraint ready_stretches_are_short check (last_id between first_id and first_id + 63),
    constraint ready_targets_stand_alone check (target is null or last_id = first_id)
);
alter table {schema}.ready set (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 5000);
create unique index ready_order on {schema}.ready (priority desc, run_at, first_id);
-- So that a claim sees what another claim has in hand of a target.
create index ready_in_line on {schema}.ready (target, priority desc, run_at, first_id) where target is not null;

-- The distinct priorities of claimable jobs, highest first: one probe of ready_order each, so jobs that are not yet due cost
-- nothing, however many there are. Rows are made one by one, for as long as the reader wants more.
create view {schema}.claimable_priorities as
with recursive ladder (priority) as (
    select 32768
  union all
    select (select lower.priority::integer from {schema}.ready lower where lower.priority < ladder.priority
            order by lower.priority desc limit 1)
    from ladder where ladder.priority is not null
)
select priority from ladder where priority < 32768;

-- Jobs that are out of the way of claims, in stretches as in `ready`. Parked: as many of their kind run as may; `name` is the
-- kind. Behind: another job has their target; `name` is the target. A job of which both is true is behind.
create table {schema}.waiting (
    room     text not null,
    name     text not null,
    priority smallint not null,
    run_at   timestamptz not null,
    first_id bigint not null,
    last_id  bigint not null,
    kind     text not null,
    target   text,
    constraint room_is_known check (room in ('parked', 'behind')),
    constraint waiting_stretches_are_short check (last_id between first_id and first_id + 63),
    constraint waiting_targets_stand_alone check (target is null or last_id = first_id),
    constraint name_is_that_of_the_room check (name = case room when 'parked' then kind else coalesce(target, '') end)
);
alter table {schema}.waiting set (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 5000);
create unique index waiting_order on {schema}.waiting (room, name, priority desc, run_at, first_id);

-- The turn of claims that keep to limits: whoever has locked this table may count. Its lock is one that no other role can
-- take, unlike an advisory one, and writes nothing, unlike that of a row.
create table {schema}.claim_turn ();

create function {schema}.take_turn() returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    lock table {schema}.claim_turn in share update exclusive mode;
end $$;

-- What is in hand: one row for each claim and kind, and one for each job with a target. `jobs` is the fence of every write of
-- a holder: a settlement takes its jobs out of the set of its token, or changes nothing. A row whose set is empty means
-- nothing and may be deleted by whoever meets it.
create table {schema}.leases (
    id           bigint generated always as identity primary key,
    token        uuid not null,
    kind         text not null,
    target       text not null default '',  -- '' = none
    node         text not null,
    claimed_at   timestamptz not null,
    expires_at   timestamptz not null,
    heartbeat_at timestamptz not null,
    jobs         int8multirange not null,
    span         int8range not null,  -- from the first job of the claim to its last, whatever has ended since
    done         int8multirange,  -- what the last settlement took out, for that statement itself
    started      bigint[] not null default '{}',  -- those that are known to have started, some of which may have ended,
    workers      integer[] not null default '{}',  -- by whom
    started_at   timestamptz[] not null default '{}',  -- and when
    constraint jobs_are_within_their_span check (span @> jobs),
    constraint started_jobs_have_a_start check (
        cardinality(started) = cardinality(workers) and cardinality(started) = cardinality(started_at))
);
-- A few rows, rewritten every few seconds and soon gone.
alter table {schema}.leases set (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index leases_of_token on {schema}.leases (token, target);
create index leases_of_kind on {schema}.leases (kind);
-- Whose hands a job is in: without it, each look at a queued job reads all leases. Ends and renewals leave it as it is, so
-- what takes a job out of a set is a heap-only update: whoever looks for a job asks for the span and for the set.
create index leases_of_span on {schema}.leases using gist (span);
-- The law: whatever claims do, no two jobs of a target are leased at once.
create unique index leases_one_a_target on {schema}.leases (target) where target <> '';

-- Which jobs have ended, one row for each statement, state and kind: retention walks along it. Each ended job is named by a
-- row as it is now, except a failed one that halts its target: that is named once it is cleared. Retention asks the job
-- itself, so a row may also name one that went on since, or is no more.
create table {schema}.endings (
    id    bigint generated always as identity primary key,
    state text not null,
    kind  text not null,
    stale boolean not null default false,  -- its jobs are marked stale
    at    timestamptz not null,  -- no earlier than any of them ended
    jobs  int8multirange not null,
    constraint ending_state_is_known check (state in ('succeeded', 'failed', 'canceled'))
);
create index endings_order on {schema}.endings (stale, state, kind, at, id);

-- One row for each job in hand: those that are known to have started, and those that are not. To look each member of a set
-- up among the started ones would cost the square of their number.
create view {schema}.in_hand as
select lease.id as lease_id, lease.token, lease.kind, lease.target, lease.node, lease.claimed_at, lease.expires_at,
       lease.heartbeat_at, begun.id, begun.worker, begun.started_at
from {schema}.leases lease
cross join lateral unnest(lease.started, lease.workers, lease.started_at) as begun (id, worker, started_at)
where lease.jobs @> begun.id
union all
select lease.id, lease.token, lease.kind, lease.target, lease.node, lease.claimed_at, lease.expires_at, lease.heartbeat_at,
       member.id, null::integer, null::timestamptz
from {schema}.leases lease
cross join lateral unnest(lease.jobs - coalesce(
    (select range_agg(int8range(id, id, '[]')) from unnest(lease.started) begun (id)), '{}')) as stretch (ids)
cross join lateral generate_series(lower(stretch.ids), upper(stretch.ids) - 1) as member (id);

-- The first jobs in hand behind an id, by their ids. Stretches of sets do not overlap, so the first ones hold them all: what
-- is in hand beyond is not looked at job by job. It hashes, which the sessions of a daemon have switched off.
create function {schema}.first_in_hand(after bigint, number bigint)
    returns table (id bigint, kind text, target text, node text, worker integer, started_at timestamptz, expires_at timestamptz)
    language sql stable set search_path = pg_catalog, pg_temp set enable_hashjoin = on as $$
    select job.id, near.kind, near.target, near.node, job.worker, job.started_at, near.expires_at
    from (select *, sum(upper(ids) - lower(ids)) over (order by ids) - (upper(ids) - lower(ids)) as before
          from (select lease.*, stretch.ids * int8range(after, null, '()') as ids
                from {schema}.leases lease cross join lateral unnest(lease.jobs) as stretch (ids)
                where upper(stretch.ids) > after + 1 order by lower(stretch.ids) limit number) first_ones) near
    cross join lateral (
        select one.id, begun.worker, begun.started_at
        from generate_series(lower(near.ids), upper(near.ids) - 1) as one (id)
        left join unnest(near.started, near.workers, near.started_at) as begun (id, worker, started_at) on begun.id = one.id) job
    where near.before < number
    order by job.id limit number
$$;

-- The last jobs in hand before an id, of these states, this kind and this target (null = any), by their ids: as first_in_hand.
create function {schema}.last_in_hand(before bigint, number bigint, states text[], of_kind text, of_target text)
    returns setof bigint
    language sql stable set search_path = pg_catalog, pg_temp set enable_hashjoin = on as $$
    select job.id
    from (select stretch.ids, case when shown.not_all then lease.started end as started
          from (select 'running' = any (states) as running, not states @> array['assigned', 'running'] as not_all) shown
          cross join {schema}.leases lease cross join lateral unnest(lease.jobs) as stretch (ids)
          where lower(stretch.ids) < before and (of_kind is null or lease.kind = of_kind)
              and (of_target is null or lease.target = of_target)
            and case when not shown.not_all then true
                     when shown.running then exists (
                         select from unnest(lease.started) begun (id) where stretch.ids @> begun.id and begun.id < before)
                     else least(upper(stretch.ids), before) - lower(stretch.ids) > (
                         select count(*) from unnest(lease.started) begun (id)
                             where stretch.ids @> begun.id and begun.id < before) end
          order by upper(stretch.ids) desc limit number) near
    cross join lateral (
        select one.id from generate_series(lower(near.ids), least(upper(near.ids), before) - 1) as one (id)
        left join unnest(near.started) as begun (id) on begun.id = one.id
        where near.started is null or (begun.id is not null) = ('running' = any (states))) job
    order by job.id desc limit number
$$;

-- Takes one job out of the room where it waits and gives the room: ready, parked or behind; null = it waits nowhere, so it is
-- in hand if it is queued. The caller holds the job's row, and says what stands in it.
-- All rooms are looked at in one statement, because a claim may move the job from one to another meanwhile; the row is taken
-- in the next, and if somebody was first the question is asked again.
create function {schema}.take_out(wanted bigint, its_priority smallint, its_run_at timestamptz, its_kind text, its_target text)
    returns text
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    it record;
begin
    loop
        select * into it from (
            (select 'ready' as room, '' as name, r.first_id, r.last_id, r.kind, r.target from {schema}.ready r
             where r.priority = its_priority and r.run_at = its_run_at and r.first_id <= wanted
             order by r.first_id desc limit 1)
          union all
            select near.* from (values ('parked', its_kind), ('behind', its_target)) as of (room, name) cross join lateral (
                select w.room, w.name, w.first_id, w.last_id, w.kind, w.target from {schema}.waiting w
                where w.room = of.room and w.name = of.name
                  and w.priority = its_priority and w.run_at = its_run_at and w.first_id <= wanted
                order by w.first_id desc limit 1) near) stretch
            where stretch.last_id >= wanted;
        if not found then
            return null;
        elsif it.room = 'ready' then
            delete from {schema}.ready r where r.priority = its_priority and r.run_at = its_run_at
                and r.first_id = it.first_id and r.last_id = it.last_id;
            continue when not found;
            insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
            select its_priority, its_run_at, part.first_id, part.last_id, it.kind, it.target
            from (values (it.first_id, wanted - 1), (wanted + 1, it.last_id)) as part (first_id, last_id)
            where part.first_id <= part.last_id;
        else
            delete from {schema}.waiting w where w.room = it.room and w.name = it.name
                and w.priority = its_priority and w.run_at = its_run_at
                and w.first_id = it.first_id and w.last_id = it.last_id;
            continue when not found;
            insert into {schema}.waiting (room, name, priority, run_at, first_id, last_id, kind, target)
            select it.room, it.name, its_priority, its_run_at, part.first_id, part.last_id, it.kind, it.target
            from (values (it.first_id, wanted - 1), (wanted + 1, it.last_id)) as part (first_id, last_id)
            where part.first_id <= part.last_id;
        end if;
        return it.room;
    end loop;
end $$;

-- New jobs come into the order of claims, and are counted, logged (at most a thousand in one row) and hinted at. Of several that
-- are made at once, those that are due and whose target another job has are never in a claim's way: they go behind it, and at the
-- commit that is looked at again (see stay_behind in 3_targets.sql). One by one, claims put them there as they come.
create function {schema}.note_new_jobs() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    arrived record;
    held integer;
    stretch integer;  -- jobs in one: a small batch is cut finer, so that several nodes may take from it at once
    pending constant jsonb := '{"state": "pending"}';
    channel text;
    taken text[];  -- targets that other jobs have
    is_placed boolean;  -- some are not due yet, or have a priority: then the log says so
    moment constant timestamptz := clock_timestamp();
begin
    select count(*)::integer as number, count(*) filter (where state = 'pending')::integer as held, count(target) as targets,
           min(id) as first_id, max(id) as last_id,
           min(kind collate "C") as kind, max(kind collate "C") as last_kind,
           min(priority) as priority, max(priority) as highest, min(run_at) as run_at, max(run_at) as latest
        into arrived from new_rows;
    if arrived.number > 0 then
        held := arrived.held;
        stretch := least(64, greatest(1, arrived.number / 16));
        is_placed := arrived.latest > moment or arrived.highest <> 0 or arrived.priority <> 0;
        if arrived.number = 1 then
            with one as materialized (select id, run_at, priority, state, kind, target from new_rows),
            placed as (
                insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
                select priority, run_at, id, id, kind, target from one where state = 'queued'
            ),
            counted as (
                insert into {schema}.count_changes (pending) select held where held = 1
            )
            insert into {schema}.event_drafts (enqueued, queued, type, job_ids, kinds, targets, common, details)
            select 1, 1 - held, 'job.enqueued', array[id], array[kind], case when target is not null then array[target] end,
                   case held when 1 then pending end,
                   case when run_at > moment or priority <> 0 then array[{schema}.place_data(run_at, priority, moment)] end
            from one;
        else
            insert into {schema}.count_changes (enqueued, pending, queued) values (arrived.number, held, arrived.number - held);
            if held = 0 and arrived.targets = 0 and arrived.kind = arrived.last_kind and arrived.priority = arrived.highest
                and arrived.run_at = arrived.latest and arrived.last_id - arrived.first_id + 1 = arrived.number then
                insert into {schema}.ready (priority, run_at, first_id, last_id, kind)
                select arrived.priority, arrived.run_at, first_id, least(arrived.last_id, first_id + stretch - 1), arrived.kind
                from generate_series(arrived.first_id, arrived.last_id, stretch) as part (first_id);
            else
                -- What an older snapshot shows of a target cannot be looked at again.
                if arrived.targets > 0 and current_setting('transaction_isolation') = 'read committed' then
                    select array_agg(holder.target) into taken from {schema}.target_holders holder
                        where not holder.reserved and holder.target in (select target from new_rows);
                end if;
                if taken is not null then
                    with behind as (
                        insert into {schema}.waiting (room, name, priority, run_at, first_id, last_id, kind, target)
                        select 'behind', target, priority, run_at, id, id, kind, target
                        from new_rows join unnest(taken) as held (target) using (target)
                        where state = 'queued' and run_at <= moment
                        returning first_id
                    )
                    insert into {schema}.newly_behind (targets, ids) select taken, array_agg(first_id)
                        from behind having count(*) > 0;
                end if;
                insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
                select priority, run_at, min(id), max(id), kind, target
                from (select priority, run_at, kind, target, id, case when target is not null then id end as alone,
                             id - row_number() over (partition by priority, run_at, kind, target order by id) as island
                      from new_rows left join unnest(taken) as held (held_target) on held_target = target
                      where state = 'queued' and (held_target is null or run_at > moment)) neighbour
                group by priority, run_at, kind, target, alone, island, id / stretch order by min(id);
            end if;
            if arrived.kind = arrived.last_kind and held in (0, arrived.number) then  -- as large batches are
                insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, common, details)
                select 'job.enqueued', count(*), array_agg(id), array[arrived.kind],
                       case when count(target) > 0 then array_agg(target) end, case when held > 0 then pending end,
                       case when is_placed then array_agg({schema}.place_data(run_at, priority, moment)) end
                from new_rows group by id / 1000 order by min(id);
            else
                insert into {schema}.event_drafts (type, size, job_ids, kinds, targets, common, details)
                select 'job.enqueued', count(*), array_agg(id), array_agg(kind),
                       case when count(target) > 0 then array_agg(target) end, case state when 'pending' then pending end,
                       case when is_placed then array_agg({schema}.place_data(run_at, priority, moment)) end
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

-- Keeps the place of a job whose row was changed by anything but the end of an attempt, which sees to it itself: by an action
-- on it, or by hand. A job in hand stays there, so it cannot be put aside, nor become one of another kind or target. One that
-- has ended is named by an ending as it is now; what named it before names it in vain.
create function {schema}.keep_place() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    room text;
begin
    if old.state = 'queued' then
        room := {schema}.take_out(old.id, old.priority, old.run_at, old.kind, old.target);
        if room is null and exists (select from {schema}.leases l where l.span @> old.id and l.jobs @> old.id) then
            if (new.state, new.kind, new.target) is distinct from (old.state, old.kind, old.target) then
                raise exception 'job % is in hand: its state, kind and target are its holder''s', old.id
                    using errcode = 'check_violation', hint = 'ask its holder: select {schema}.cancel(id) or {schema}.pause(id)';
            end if;
            return null;
        end if;
    end if;
    if new.state in ('succeeded', 'failed', 'canceled') then
        insert into {schema}.endings (state, kind, stale, at, jobs)
        select new.state, new.kind, new.stale_at is not null, new.finished_at, int8multirange(int8range(new.id, new.id, '[]'))
        where not (new.state = 'failed' and new.target is not null and new.cleared_at is null)
          and ((new.state, new.kind) is distinct from (old.state, old.kind) or old.target is not null and old.cleared_at is null);
    elsif new.state = 'queued' and room = 'behind' and new.target is not distinct from old.target then
        insert into {schema}.waiting (room, name, priority, run_at, first_id, last_id, kind, target)
        values ('behind', new.target, new.priority, new.run_at, new.id, new.id, new.kind, new.target);
    elsif new.state = 'queued' then
        insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
        values (new.priority, new.run_at, new.id, new.id, new.kind, new.target);
    end if;
    return null;
end $$;

create trigger job_rows_keep_place
    after update of state, priority, run_at, kind, target, cleared_at on {schema}.job_rows for each row
    when (old.attempt = new.attempt and (old.state, old.priority, old.run_at, old.kind, old.target, old.cleared_at)
        is distinct from (new.state, new.priority, new.run_at, new.kind, new.target, new.cleared_at))
    execute function {schema}.keep_place();

create function {schema}.refuse_request() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not exists (select from {schema}.leases l where l.span @> new.id and l.jobs @> new.id) then
        raise exception 'job % is in nobody''s hands: there is nobody to ask', new.id using errcode = 'check_violation';
    end if;
    return null;
end $$;

create trigger job_rows_ask_a_holder after update of request on {schema}.job_rows for each row
    when (new.request is not null and old.request is null) execute function {schema}.refuse_request();

-- A job that was deleted by hand stands nowhere. An ending may go on naming it: retention then finds nothing to delete.
create function {schema}.leave_place() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if {schema}.take_out(old.id, old.priority, old.run_at, old.kind, old.target) is null then
        update {schema}.leases l set jobs = l.jobs - int8multirange(int8range(old.id, old.id, '[]'))
            where l.span @> old.id and l.jobs @> old.id;
        delete from {schema}.leases l where l.jobs = '{}';
    end if;
    return null;
end $$;

create trigger job_rows_leave_place after delete on {schema}.job_rows for each row
    when (old.state = 'queued') execute function {schema}.leave_place();

create function {schema}.leave_all_places() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    truncate {schema}.ready, {schema}.waiting, {schema}.leases, {schema}.endings;
    return null;
end $$;

create trigger job_rows_leave_all_places after truncate on {schema}.job_rows for each statement
    execute function {schema}.leave_all_places();
