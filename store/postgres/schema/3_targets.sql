-- Targets: jobs of one target run one at a time, in order.

-- That no two of them are leased at once is the law of leases_one_a_target.
create index job_rows_halting on {schema}.job_rows (target, id)
    where target is not null and (rest = 'paused' or rest = 'failed' and cleared_at is null);

-- The job that has the target to itself: it is leased, waits for its retry, halts the target (paused, failed), or is the
-- next and not yet claimed (reserved). A target without a row is free, and no job is behind.
create table {schema}.target_holders (
    target   text primary key,
    job_id   bigint not null,
    reserved boolean not null default false
) with (fillfactor = 50);

-- Passes a target on if the job that holds it has ended. The first job that halts the target comes next, else the first
-- waiting one in claim order; if there is none the target is free. Returns whether a job became claimable. Idempotent: may
-- be called at any time.
-- Locks the holder's row, then jobs and stretches: everyone who waits for both takes them in this order. Each read is a statement
-- of its own, which sees what was committed while the lock was waited for.
create function {schema}.pass_on(wanted text) returns boolean
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    holder record;
    held record;
    next_id bigint;
    next_priority smallint;
    next_run_at timestamptz;
    next_kind text;
    halted boolean;
begin
    select h.job_id, h.reserved into holder from {schema}.target_holders h where h.target = wanted for update;
    if not found then
        return false;
    end if;
    select j.id, j.state, j.priority, j.run_at, j.kind, j.target into held from {schema}.job_rows j
        where j.id = holder.job_id and j.target = wanted
          and (j.state in ('queued', 'paused') or j.state = 'failed' and j.cleared_at is null);
    if held.id is not null and not holder.reserved then
        return false;
    end if;
    -- A row that changed while it was waited for is missing from the answer: then the question is asked again.
    loop
        select j.id into next_id from {schema}.job_rows j
            where j.target = wanted and (j.rest = 'paused' or j.rest = 'failed' and j.cleared_at is null)
            order by j.id limit 1 for no key update;
        halted := found;
        exit when found or not exists (
            select from {schema}.job_rows j
            where j.target = wanted and (j.rest = 'paused' or j.rest = 'failed' and j.cleared_at is null));
    end loop;
    while not halted loop
        select w.first_id, w.priority, w.run_at, w.kind into next_id, next_priority, next_run_at, next_kind
            from {schema}.waiting w
            where w.room = 'behind' and w.name = wanted
            order by w.priority desc, w.run_at, w.first_id limit 1 for update;
        exit when found or not exists (select from {schema}.waiting w where w.room = 'behind' and w.name = wanted);
    end loop;
    if held.state = 'queued' then
        if not halted and (next_id is null
            or (-held.priority::integer, held.run_at, held.id) < (-next_priority::integer, next_run_at, next_id)) then
            return false;
        end if;
        perform {schema}.take_out(held.id, held.priority, held.run_at, held.kind, held.target);
        insert into {schema}.waiting (room, name, priority, run_at, first_id, last_id, kind, target)
        values ('behind', wanted, held.priority, held.run_at, held.id, held.id, held.kind, wanted);
    end if;
    if next_id is null then
        delete from {schema}.target_holders h where h.target = wanted;
        return false;
    end if;
    update {schema}.target_holders h set job_id = next_id, reserved = true where h.target = wanted;
    if not halted then
        delete from {schema}.waiting w
            where w.room = 'behind' and w.name = wanted
              and w.priority = next_priority and w.run_at = next_run_at and w.first_id = next_id;
        insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
        values (next_priority, next_run_at, next_id, next_id, next_kind, wanted);
    end if;
    return not halted;
end $$;

-- The same for several targets, in the order given; callers pass them sorted, so that two never wait for each other.
-- Returns how many jobs became claimable, and hints idle nodes if `ring`.
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
        perform {schema}.hint('');
    end if;
    return freed;
end $$;

-- Locks a job in order to act on it, and before it the row of its target's holder.
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
            -- Another job took the target while this one was waited for: unlock this one and begin with the target again.
            raise exception using errcode = 'MU001';
        exception when sqlstate 'MU001' then
            null;
        end;
    end loop;
end $$;

-- Jobs that were set behind when they were made, until their commit.
create table {schema}.newly_behind (
    id      bigint generated always as identity primary key,
    targets text[] not null,
    ids     bigint[] not null
);

-- At the commit of new jobs that were set behind: whoever has their target now will pass it on to them, since the row that says
-- so is held until they can be seen, and changes, so that a transaction with an older snapshot notices. Where that row is gone,
-- promises the target to another already, or is in somebody's hands, they go where claims look. It waits for nobody, and
-- nobody waits for more than a commit: the transaction in which jobs are made may be long.
create function {schema}.stay_behind() returns trigger
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    taken text[];
begin
    with held as (
        select h.target from {schema}.target_holders h where h.target = any(new.targets) and not h.reserved
        order by h.target for no key update skip locked
    ),
    changed as (
        update {schema}.target_holders h set job_id = h.job_id from held where h.target = held.target returning h.target
    )
    select coalesce(array_agg(changed.target), '{}') into taken from changed;
    if cardinality(taken) < cardinality(new.targets) then
        with back as (
            delete from {schema}.waiting w using {schema}.job_rows job
            where job.id = any(new.ids) and job.target <> all (taken) and w.room = 'behind' and w.name = job.target
              and w.priority = job.priority and w.run_at = job.run_at and w.first_id = job.id
            returning w.priority, w.run_at, w.first_id, w.kind, w.target
        )
        insert into {schema}.ready (priority, run_at, first_id, last_id, kind, target)
        select priority, run_at, first_id, first_id, kind, target from back;
    end if;
    delete from {schema}.newly_behind known where known.id = new.id;
    return null;
end $$;

create constraint trigger newly_behind_stay after insert on {schema}.newly_behind
    deferrable initially deferred for each row execute function {schema}.stay_behind();
