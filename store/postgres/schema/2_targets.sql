-- Targets: jobs of one target run one at a time, in order.

-- The law: whatever claims do, no two jobs of a target are leased at once.
create unique index job_rows_one_a_target on {schema}.job_rows (target)
    where target is not null and state in ('assigned', 'running');
-- Jobs that wait behind another one of their target are in no claim's way.
create index job_rows_behind on {schema}.job_rows (target, priority desc, run_at, id) where behind;
-- The other waiting ones, in order within their target, so that a claim sees what another claim has in hand.
create index job_rows_in_line on {schema}.job_rows (target, priority desc, run_at, id)
    where target is not null and state = 'queued' and not parked and not behind;
create index job_rows_halting on {schema}.job_rows (target, id)
    where target is not null and (state = 'paused' or state = 'failed' and cleared_at is null);

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
-- Locks the holder's row, then jobs: everyone who waits for both takes them in this order. Each read is a statement of its
-- own, which sees what was committed while the lock was waited for.
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
    -- A row that changed while it was waited for is missing from the answer: then the question is asked again.
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
        perform pg_notify('{channel}', '');
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
