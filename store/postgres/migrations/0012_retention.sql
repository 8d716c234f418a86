-- retention: jobs that have ended go stale, and are deleted

-- Jobs that have ended and are not yet stale, kind by kind in the order of their ends: what a pass walks along. A job
-- that halts its target is not among them, until somebody clears it.
create index job_rows_ended on {schema}.job_rows (state, kind, finished_at, id)
    where state in ('succeeded', 'failed', 'canceled') and stale_at is null
      and (state <> 'failed' or target is null or cleared_at is not null);

-- The stale ones: what the next pass walks along.
create index job_rows_stale on {schema}.job_rows (state, kind, finished_at, id) where stale_at is not null;

-- Whatever makes a job go on: it is stale no longer.
create function {schema}.freshen() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    new.stale_at := null;
    return new;
end $$;

create trigger job_rows_freshen before update of state on {schema}.job_rows for each row
    when (old.stale_at is not null and new.state <> old.state) execute function {schema}.freshen();

-- Jobs that were deleted, as every interface showed them, if `[retention] archive` asks for it. musterd never reads it.
create table {schema}.job_archive (
    id          bigint primary key,
    job         jsonb not null,
    archived_at timestamptz not null default clock_timestamp()
);

-- What outlives its job, by the time from which nobody needs it.
create index webhooks_of_the_deleted on {schema}.webhooks (ended_at) where type = 'job.deleted' and state <> 'waiting';
create index dedup_keys_until on {schema}.dedup_keys (until) where until < 'infinity';

-- As in the third migration, and a key that was deleted while it was waited for is made anew.
-- The job that holds a key, or null. Locks the key to the end of the transaction: who comes later waits, and then sees
-- what was decided. The lock is one statement and the look the next, since a statement that has waited still sees the past.
create or replace function {schema}.key_holder(wanted text) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    held record;
begin
    loop
        insert into {schema}.dedup_keys (key, job_id) values (wanted, 0) on conflict do nothing;
        perform from {schema}.dedup_keys k where k.key = wanted for update;
        exit when found;
    end loop;
    select k.job_id, k.until into held from {schema}.dedup_keys k where k.key = wanted;
    if held.until > clock_timestamp() or held.until is null and exists (
        select from {schema}.job_rows j
        where j.id = held.job_id and j.state not in ('succeeded', 'failed', 'canceled')) then
        return held.job_id;
    end if;
    return null;
end $$;

revoke execute on all functions in schema {schema} from public;
