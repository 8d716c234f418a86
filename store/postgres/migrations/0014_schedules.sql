-- schedules: which slot was last seen to, and the job it made. last_job_id is the newest job, slot_job_id the newest that a
-- slot made: the other may have been made by hand.

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

-- Sees to a slot, once: slots only ever go forward, so whoever comes second finds it taken, and those of a paused schedule
-- are nobody's. Without a slot it makes a job now. Returns whether it was taken, and the job.
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
    insert into {schema}.job_rows as made (kind, payload, priority, target)
        values (fire_schedule.kind, fire_schedule.payload, fire_schedule.priority, fire_schedule.target)
        returning made.id into job_id;
    update {schema}.schedules s set last_job_id = fire_schedule.job_id, last_fired_at = clock_timestamp(), fired = s.fired + 1,
            slot_job_id = case when at_slot is null then s.slot_job_id else fire_schedule.job_id end
        where s.name = wanted;
end $$;

revoke execute on all functions in schema {schema} from public;
