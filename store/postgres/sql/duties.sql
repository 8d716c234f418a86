-- Nodes, duties and schedules.

-- beat: writes a node's sign of life and its state; without kinds the last ones stay; forgets nodes that died long ago, at most 100
with forgotten as (
    delete from {schema}.nodes
    where id = any (array(select id from {schema}.nodes
                          where heartbeat_at < clock_timestamp() - make_interval(secs => %(forget_seconds)s)
                          limit 100 for update skip locked))
      and id <> %(id)s
)
insert into {schema}.nodes as node
    (id, name, version, started_at, heartbeat_at, phase, idle, busy, retiring, default_count, max_count, pause_seconds,
     config_generation, config_hash, load, wish, kinds)
values (%(id)s, %(name)s, %(version)s, clock_timestamp() - make_interval(secs => %(up_seconds)s), clock_timestamp(),
        %(phase)s, %(idle)s, %(busy)s, %(retiring)s, %(default_count)s, %(max_count)s, %(pause_seconds)s,
        %(config_generation)s, %(config_hash)s, %(load)s, %(wish)s, %(kinds)s::jsonb)
on conflict (id) do update
set heartbeat_at = excluded.heartbeat_at, phase = excluded.phase, idle = excluded.idle, busy = excluded.busy,
    retiring = excluded.retiring, default_count = excluded.default_count, max_count = excluded.max_count,
    pause_seconds = excluded.pause_seconds, config_generation = excluded.config_generation,
    config_hash = excluded.config_hash, load = excluded.load, wish = excluded.wish,
    kinds = coalesce(excluded.kinds, node.kinds)

-- leave: forgets a node that stops cleanly
delete from {schema}.nodes where id = %(id)s

-- nodes: the nodes, the oldest first, each with the age of its last sign of life; at most `bound`
select id, name, version, started_at, heartbeat_at, phase, idle, busy, retiring, default_count, max_count, kinds::text,
       extract(epoch from clock_timestamp() - heartbeat_at)::float8, pause_seconds, config_generation, config_hash, load, wish
from {schema}.nodes
where %(young_seconds)s::float8 is null
   or heartbeat_at > clock_timestamp() - make_interval(secs => %(young_seconds)s::float8)
order by started_at, id limit %(bound)s

-- look_at_duties: which of these duties are free, when the next of the others expires, how many nodes are alive
with now as materialized (select clock_timestamp() as at)
select array(select wanted from unnest(%(duties)s::text[]) wanted
             where not exists (select from {schema}.duties held
                               where held.duty = wanted and held.term is not null and held.expires_at > now.at)
             order by wanted),
       (select extract(epoch from min(held.expires_at) - now.at)::float8 from {schema}.duties held
        where held.duty = any (%(duties)s::text[]) and held.term is not null and held.expires_at > now.at),
       (select count(*)::int from {schema}.nodes node
        where node.phase = 'running' and node.heartbeat_at > now.at - make_interval(secs => %(pauses)s * node.pause_seconds))
from now

-- take_duties: takes those of these duties that no node has, or whose lease has run out; returns them
-- If another node takes one at this moment, it waits for that node, and then finds the duty taken.
insert into {schema}.duties as duty (duty, tenant, node, node_id, term, acquired_at, heartbeat_at, expires_at)
select wanted, %(tenant)s, %(node)s, %(node_id)s, %(term)s, clock_timestamp(), clock_timestamp(),
       clock_timestamp() + make_interval(secs => %(lease_seconds)s)
from unnest(%(duties)s::text[]) wanted order by wanted
on conflict (duty) do update
set tenant = excluded.tenant, node = excluded.node, node_id = excluded.node_id, term = excluded.term,
    acquired_at = clock_timestamp(), heartbeat_at = clock_timestamp(),
    expires_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s),
    hand_overs = duty.hand_overs + (duty.node_id is distinct from excluded.node_id)::int
where duty.term is null or duty.expires_at <= clock_timestamp()
returning duty.duty

-- part reports: what was done of duties
unnest(%(duties)s::text[], %(terms)s::uuid[], %(runs)s::int[], %(items)s::bigint[], %(errors)s::int[], %(last_errors)s::text[],
       %(run_seconds)s::float8[], %(running_seconds)s::float8[])
    as report (duty, term, runs, items, errors, last_error, run_seconds, running_seconds)

-- renew_duties: extends the leases of duties whose terms still stand, and writes what was done; returns them
update {schema}.duties duty
set heartbeat_at = clock_timestamp(), expires_at = clock_timestamp() + make_interval(secs => %(lease_seconds)s),
    last_run_at = case when report.runs > 0 then clock_timestamp() else duty.last_run_at end,
    runs = duty.runs + report.runs, items = duty.items + report.items, errors = duty.errors + report.errors,
    last_error = coalesce(report.last_error, duty.last_error), run_seconds = duty.run_seconds + report.run_seconds,
    running_since = clock_timestamp() - make_interval(secs => report.running_seconds)
from (select * from {reports} order by duty) report
where duty.duty = report.duty and duty.term = report.term
returning duty.duty

-- release_duties: gives duties up, each fenced by its term, and wakes the nodes that would take them
with released as (
    update {schema}.duties duty
    set term = null, expires_at = null,
        last_run_at = case when report.runs > 0 then clock_timestamp() else duty.last_run_at end,
        runs = duty.runs + report.runs, items = duty.items + report.items, errors = duty.errors + report.errors,
        last_error = coalesce(report.last_error, duty.last_error), run_seconds = duty.run_seconds + report.run_seconds,
        running_since = null
    from {reports}
    where duty.duty = report.duty and duty.term = report.term
    returning duty.duty
)
select {schema}.hint('duties') from released limit 1

-- duties: all duties, as people see them
select duty, case when term is not null and expires_at > clock_timestamp() then node end,
       case when term is not null and expires_at > clock_timestamp() then node_id end,
       acquired_at, heartbeat_at,
       case when term is not null then extract(epoch from clock_timestamp() - acquired_at)::float8 end,
       extract(epoch from expires_at - clock_timestamp())::float8,
       last_run_at, runs, items, errors, last_error, hand_overs, run_seconds,
       case when term is not null and expires_at > clock_timestamp()
            then extract(epoch from clock_timestamp() - running_since)::float8 end,
       clock_timestamp()
from {schema}.duties order by duty

-- know_schedules: the last slots of these schedules; a new one begins now
with begun as (
    insert into {schema}.schedules (name)
    select name from unnest(%(names)s::text[]) name
    where not exists (select from {schema}.schedules known where known.name = name.name) order by name
    on conflict do nothing
    returning name, last_slot, last_fired_at, last_job_id, fired, skipped, missed, paused_at
),
known as (
    select name, last_slot, last_fired_at, last_job_id, fired, skipped, missed, paused_at
    from {schema}.schedules where name = any (%(names)s::text[])
  union all
    select * from begun
)
select known.name, known.last_slot, known.last_fired_at, known.last_job_id, job.state, known.fired, known.skipped,
       known.missed, known.paused_at, clock_timestamp()
from known left join {schema}.job_rows job on job.id = known.last_job_id
order by known.name

-- fire_schedule: handles a slot, once
select taken, job_id from {schema}.fire_schedule(
    %(schedule)s, %(slot)s::timestamptz, %(kind)s, %(payload)s::jsonb, %(priority)s::smallint, %(target)s, %(skip_if_busy)s)

-- pause_schedule: no node takes its slots until it is resumed
insert into {schema}.schedules as known (name, paused_at) values (%(name)s, clock_timestamp())
on conflict (name) do update set paused_at = clock_timestamp() where known.paused_at is null

-- resume_schedule: its slots count again from now on
update {schema}.schedules set paused_at = null, last_slot = greatest(last_slot, clock_timestamp())
where name = %(name)s and paused_at is not null

-- rewind_schedule: begins anew at this slot if the clock was once further ahead
update {schema}.schedules set last_slot = clock_timestamp()
where name = %(name)s and last_slot > clock_timestamp() + %(ahead)s::interval

-- let_slots_go: handles slots by skipping them
update {schema}.schedules set last_slot = %(up_to)s, missed = missed + %(count)s
where name = %(name)s and last_slot < %(up_to)s
