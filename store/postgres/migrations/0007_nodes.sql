-- nodes: what each running daemon says of itself, every few seconds

create table {schema}.nodes (
    id            uuid primary key,  -- another at each start
    name          text not null,
    version       text not null,
    started_at    timestamptz not null,
    heartbeat_at  timestamptz not null,
    phase         text not null,
    idle          integer not null,
    busy          integer not null,
    retiring      integer not null,
    default_count integer not null,
    max_count     integer not null,
    pause_seconds float8 not null,  -- it says again that it lives no later than this
    kinds         jsonb,  -- null = it has not yet said which it knows
    constraint node_phase_is_known check (phase in ('starting', 'running', 'draining', 'stopped'))
) with (fillfactor = 50);
