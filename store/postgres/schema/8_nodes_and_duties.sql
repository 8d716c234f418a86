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

-- How many nodes there is work for, if each has `jobs_per_node` jobs in hand at once: for jobs in hand, those that are due, and
-- those that become due within the horizon. Nodes are not asked, so it tells of work that no node is there for. It is one at
-- least while only a node can say whether there is room for parked jobs, or has a webhook to send. Of what waits it reads the
-- first 10,000 stretches and counts as many jobs.
create function {schema}.nodes_desired(jobs_per_node integer, horizon_seconds float8 default 30) returns integer
    language plpgsql stable security definer set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    until timestamptz;
    jobs bigint;
begin
    if jobs_per_node is null or jobs_per_node < 1 then
        perform {schema}.refuse_option(format('jobs_per_node: found %s, wanted a whole number, 1 or more',
            coalesce(jobs_per_node::text, 'null')),
            'give the workers.max_count of a node');
    elsif horizon_seconds is null or horizon_seconds not between 0 and 86400 then
        perform {schema}.refuse_option(format('horizon_seconds: found %s, wanted 0 to 86400 seconds',
            coalesce(horizon_seconds::text, 'null')));
    end if;
    until := clock_timestamp() + make_interval(secs => horizon_seconds);
    select coalesce(sum(upper(part.ids) - lower(part.ids)), 0) into jobs
        from {schema}.leases lease cross join lateral unnest(lease.jobs) as part (ids);
    if (select queue.paused_at is null from {schema}.queue_state queue) then
        jobs := jobs + (
            select least(10000, coalesce(sum(first.size), 0)) from (
                select near.size from {schema}.claimable_priorities levels cross join lateral (
                    select stretch.last_id - stretch.first_id + 1 as size from {schema}.ready stretch
                    where stretch.priority = levels.priority and stretch.run_at <= until
                    order by stretch.run_at, stretch.first_id limit 10000) near
                limit 10000) first);
        jobs := greatest(jobs, (exists (select from {schema}.waiting parked where parked.room = 'parked'))::int);
    end if;
    jobs := greatest(jobs, (exists (
        select from {schema}.webhooks message where message.state = 'waiting' and message.due_at <= until))::int);
    return ceil(jobs::numeric / jobs_per_node);
end $$;

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

-- Hours of the past beside the model: how long jobs waited as it was, and as the model has it.
create table {schema}.compared_hours (
    at        timestamptz primary key,  -- when it began
    seconds   float8 not null,          -- so much of its end was compared
    attempts  integer not null,
    skipped   text,                     -- why nothing was
    was       jsonb,
    present   jsonb,                    -- with the settings that were in force
    candidate jsonb                     -- with those of [scaling.candidate]
);
