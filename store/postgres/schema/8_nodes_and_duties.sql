-- Nodes, the duties that one of them does for all, and schedules.

-- What each running daemon says about itself, every few seconds.
create table {schema}.nodes (
    id                uuid primary key,  -- a new one at each start
    name              text not null,
    version           text not null,
    started_at        timestamptz not null,
    heartbeat_at      timestamptz not null,
    phase             text not null,
    idle              integer not null,
    busy              integer not null,
    retiring          integer not null,
    default_count     integer not null,
    max_count         integer not null,
    pause_seconds     float8 not null,  -- its next sign of life comes no later than this
    kinds             jsonb,            -- null = not yet known
    config_generation bigint,           -- how many configurations it has had since its start
    config_hash       text,             -- of the settings that the nodes of one store must agree on
    load              double precision, -- of its machine in the last minute, for each core
    wish              integer,          -- workers that it wishes for, before limits
    constraint node_phase_is_known check (phase in ('starting', 'running', 'draining', 'stopped'))
) with (fillfactor = 50);

-- Which node does the background work that one node at a time does for all.
create table {schema}.duties (
    duty         text primary key,
    tenant       text not null default '',  -- the name by which its holder knows this store
    node         text,
    node_id      uuid,
    term         uuid,           -- null = nobody has it
    acquired_at  timestamptz,
    heartbeat_at timestamptz,
    expires_at   timestamptz,
    last_run_at  timestamptz,
    runs         bigint not null default 0,
    items        bigint not null default 0,
    errors       bigint not null default 0,
    last_error   text,
    hand_overs   bigint not null default 0,
    run_seconds  float8 not null default 0,  -- of all runs together
    running_since timestamptz,               -- of the run that was under way at the last sign of life
    constraint a_duty_is_held_by_a_node_for_a_while check (
        term is null or (node is not null and node_id is not null and acquired_at is not null and expires_at is not null))
);
-- A handful of rows, rewritten every two seconds.
alter table {schema}.duties set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- The past of the queue, as charts draw it: rows of steps of three lengths, each kept for its time. A step begins at
-- at_seconds, since the epoch. Of what is seen of the queue a row has the highest.
create table {schema}.history_queue (
    step_seconds   integer not null,
    at_seconds     bigint not null,
    depth          bigint not null,
    oldest_seconds float8 not null,
    crew           integer not null,
    wish           integer not null,
    max_count      integer not null,
    stands_seconds float8 not null,  -- for so long nothing newer is to be expected
    primary key (step_seconds, at_seconds)
);

-- What became of jobs. Each node adds what it has seen to rows that all share. The kind '' stands for all
-- kinds together. The spreads count values within bounds that grow by half an octave each.
create table {schema}.history_kinds (
    step_seconds integer not null,
    at_seconds   bigint not null,
    kind         text not null,
    succeeded    bigint not null,
    failed       bigint not null,
    canceled     bigint not null,
    retried      bigint not null,
    waits        bigint[] not null,
    runs         bigint[] not null,
    primary key (step_seconds, at_seconds, kind)
);

create table {schema}.history_marks (
    at_seconds float8 not null,
    what       text not null,
    node       text not null,
    said       text not null,
    primary key (at_seconds, what, node)
);

create function {schema}.sum_of_each(one bigint[], other bigint[]) returns bigint[]
    language sql immutable set search_path = pg_catalog, pg_temp as $$
    select array(select coalesce(a, 0) + coalesce(b, 0) from unnest(one, other) with ordinality as each (a, b, nth) order by nth)
$$;

-- Which slot was handled last, and the job it made. last_job_id is the newest job, slot_job_id the newest that a slot made:
-- the other may have been made by hand.
create table {schema}.schedules (
    name          text primary key,
    last_slot     timestamptz not null default clock_timestamp(),
    last_fired_at timestamptz,
    last_job_id   bigint,
    slot_job_id   bigint,
    fired         bigint not null default 0,
    skipped       bigint not null default 0,
    missed        bigint not null default 0,
    paused_at     timestamptz,
    constraint schedule_has_a_name check (char_length(name) between 1 and 100)
);

-- Handles a slot once: slots only ever go forward, so a second caller finds it taken, and nobody takes those of a paused
-- schedule. Without a slot it makes a job now. Returns whether the slot was taken, and the job.
create function {schema}.fire_schedule(wanted text, at_slot timestamptz, kind text, payload jsonb, priority smallint,
    target text, skip_if_busy boolean, out taken boolean, out job_id bigint)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    busy boolean;
begin
    insert into {schema}.schedules (name) values (wanted) on conflict do nothing;
    update {schema}.schedules s set last_slot = coalesce(at_slot, s.last_slot)
        where s.name = wanted and (at_slot is null or s.last_slot < at_slot and s.paused_at is null);
    taken := found;
    if not taken then
        return;
    end if;
    busy := skip_if_busy and exists (
        select from {schema}.job_rows j, {schema}.schedules s
        where s.name = wanted and j.id in (s.last_job_id, s.slot_job_id)
            and j.state not in ('succeeded', 'failed', 'canceled'));
    if busy then
        update {schema}.schedules s set skipped = s.skipped + 1 where s.name = wanted;
        return;
    end if;
    insert into {schema}.job_rows as made (kind, payload, priority, target, schedule, scheduled_for)
        values (fire_schedule.kind, fire_schedule.payload, fire_schedule.priority, fire_schedule.target, wanted, at_slot)
        returning made.id into job_id;
    update {schema}.schedules s set last_job_id = fire_schedule.job_id, last_fired_at = clock_timestamp(), fired = s.fired + 1,
            slot_job_id = case when at_slot is null then s.slot_job_id else fire_schedule.job_id end
        where s.name = wanted;
end $$;

-- The decisions of the supervisors. A row has a run of them: `ticks` that are alike but for their times, evenly from `at` to
-- `until`, which are an hour apart at most. The latest run of a node grows.
create table {schema}.scaling_journal (
    at            timestamptz not null,  -- by the clock of the node, as its log
    node_id       uuid not null,
    node          text not null,
    until         timestamptz not null,
    ticks         integer not null,
    policy        text not null,
    default_count integer,               -- the bounds that were in force
    max_count     integer,
    due           integer,               -- null = the queue could not be observed
    others_free   integer,
    share         integer,
    room          integer,
    busy          integer not null,
    size_before   integer not null,
    raw_wish      integer,
    because       text,
    decided_by    jsonb,                 -- {"kind", "job"}
    slack_seconds float8,
    limited_by    text,
    desired       integer not null,
    hired         integer not null,
    taken_back    integer not null,
    retired       integer not null,
    candidate     jsonb,                 -- what [scaling.candidate] would have decided
    primary key (at, node_id),
    constraint a_run_has_a_tick_at_each_end check (ticks >= 1 and until >= at)
);
