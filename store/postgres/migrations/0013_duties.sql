-- duties: who does the background work that one node at a time does for all

create table {schema}.duties (
    duty         text primary key,
    tenant       text not null default '',  -- by what name its holder knows this store
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
    constraint a_duty_is_held_by_a_node_for_a_while check (
        term is null or (node is not null and node_id is not null and acquired_at is not null and expires_at is not null))
);
-- A handful of rows, rewritten every two seconds.
alter table {schema}.duties set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

create view {schema}.duty_leaders as
select duty, tenant, node, acquired_at, heartbeat_at, clock_timestamp() - acquired_at as held_for,
       last_run_at, items, errors, last_error, hand_overs,
       term is not null and expires_at > clock_timestamp() as is_held
from {schema}.duties;
