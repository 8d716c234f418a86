-- Control: pausing the queue, and what users may do to single jobs.

create table {schema}.queue_state (
    only_row  boolean primary key default true check (only_row),
    paused_at timestamptz,
    paused_by text,
    tenant    text not null default 'default'  -- as its nodes call it
);
insert into {schema}.queue_state (tenant) values (coalesce(substring('{schema_name}' from '^musterd_(.+)$'), 'default'));

-- Whether an action is allowed in a state, and its effect: a new state, or 'ask' = the job's holder is asked.
-- store/lifecycle.py has the same table.
create function {schema}.control_effect(action text, state text) returns text
    language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case action || ' ' || state
        when 'cancel pending' then 'canceled' when 'cancel queued' then 'canceled' when 'cancel paused' then 'canceled'
        when 'cancel assigned' then 'ask' when 'cancel running' then 'ask'
        when 'pause queued' then 'paused'
        when 'pause assigned' then 'ask' when 'pause running' then 'ask'
        when 'resume paused' then 'queued' when 'resume failed' then 'queued'
        when 'release pending' then 'queued'
        when 'clear failed' then 'failed' when 'clear paused' then 'canceled' end
$$;

-- How a job of which the row says that it is queued stands, if it is in hand; null = it is not.
create function {schema}.state_in_hand(job bigint) returns text
    language sql stable set search_path = pg_catalog, pg_temp as $$
    select case when job = any (lease.started) then 'running' else 'assigned' end
    from {schema}.leases lease where lease.span @> job and lease.jobs @> job limit 1
$$;

-- Acts on one job. Returns whether there is such a job, its state before and after, whether its holder has been asked,
-- and whether the action was allowed. It waits for any lock on the row, and decides on the newest version. Nothing is done
-- to a job that is in none of the states in `among`; then state_before says which it is in.
-- A job whose row is locked cannot come out of anybody's hands, and if it was taken out of where it waits it cannot come into
-- any. Between the two a claim may take it: then the question is asked again. The triggers of 2_places.sql see to the rest.
create function {schema}.control_job(action text, wanted bigint, among text[] default null,
    out known boolean, out state_before text, out state_after text, out requested boolean, out allowed boolean)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    job record;
    place record;
    effect text;
    moment timestamptz;
begin
    select * into job from {schema}.lock_job(wanted);
    known := job.state is not null;
    requested := false;
    loop
        state_before := job.state;
        if job.state = 'queued' then
            state_before := coalesce({schema}.state_in_hand(wanted), 'queued');
        end if;
        state_after := state_before;
        effect := {schema}.control_effect(action, state_before);
        -- A cancel that was asked for is not taken back by a pause.
        allowed := effect is not null and not (action = 'pause' and job.request is not distinct from 'cancel')
            and (among is null or state_before = any (among));
        if not allowed then
            return;
        end if;
        exit when state_before <> 'queued';
        select j.priority, j.run_at, j.kind into place from {schema}.job_rows j where j.id = wanted;
        exit when {schema}.take_out(wanted, place.priority, place.run_at, place.kind, job.target) is not null;
        if {schema}.state_in_hand(wanted) is null then
            raise exception 'job % is queued and stands nowhere', wanted
                using errcode = 'data_corrupted', hint = 'select * from {schema}.check() finds all such jobs';
        end if;
    end loop;
    moment := clock_timestamp();
    if effect = 'ask' then
        requested := true;
        update {schema}.job_rows j set request = action, requested_at = moment where j.id = wanted;
        perform {schema}.hint(wanted::text);
        return;
    end if;
    state_after := effect;
    if action = 'clear' and effect = 'failed' then
        update {schema}.job_rows j set cleared_at = moment where j.id = wanted and j.cleared_at is null;
        if found then
            perform {schema}.draft_control_event('job.cleared', wanted);
        end if;
        perform {schema}.hand_over(array[job.target], true) where job.target is not null;
        return;
    end if;
    -- The attempt that ended last goes into the history: the job's own row is for its next attempt, or its end.
    insert into {schema}.attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error, log)
        select j.id, j.attempt, j.node, j.worker, j.started_at, j.finished_at, j.last_outcome,
               j.error, j.log
        from {schema}.job_rows j where j.id = wanted and j.last_outcome is not null;
    update {schema}.job_rows j
        set state = effect,
            run_at = case when action <> 'resume' then j.run_at
                          -- What it asked for itself still holds.
                          when exists (select from {schema}.attempts a where a.job_id = j.id and a.attempt = j.attempt
                                       and a.outcome = 'snoozed') then greatest(j.run_at, moment)
                          else moment end,
            finished_at = case when effect = 'canceled' then moment else j.finished_at end,
            cleared_at = case when action = 'clear' then moment end,
            reason = case action when 'cancel' then 'canceled on request' when 'clear' then 'cleared on request'
                                 when 'pause' then 'Job was interrupted by user' end,
            forgiven = case when action = 'resume' then j.attempt else j.forgiven end,
            max_attempts = case when action = 'resume' then j.max_attempts + j.attempt - j.forgiven
                                else j.max_attempts end,
            spent = case when action <> 'resume' then j.spent end,
            last_outcome = null,
            log = null,
            changed_at = moment
        where j.id = wanted;
    insert into {schema}.count_changes (pending, queued, paused, failed, canceled)
        select (effect = 'pending')::int - (job.state = 'pending')::int, (effect = 'queued')::int - (job.state = 'queued')::int,
               (effect = 'paused')::int - (job.state = 'paused')::int, (effect = 'failed')::int - (job.state = 'failed')::int,
               (effect = 'canceled')::int - (job.state = 'canceled')::int;
    perform {schema}.draft_control_event(case when effect in ('canceled', 'paused') then 'job.' || effect
                                       when action = 'resume' then 'job.resumed' else 'job.released' end, wanted);
    if effect = 'queued' then
        perform {schema}.hint('');
    end if;
    perform {schema}.hand_over(array[job.target], true) where job.target is not null;
end $$;

-- Drafts the event of an action on a job that nobody holds, and makes the message of its end.
create function {schema}.draft_control_event(event text, wanted bigint) returns void
    language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into {schema}.event_drafts (type, job_ids, kinds, targets, attempts, common)
    select event, array[j.id], array[j.kind], case when j.target is not null then array[j.target] end,
           case when event in ('job.canceled', 'job.paused') and j.attempt > 0 then array[j.attempt] end,
           case when event in ('job.canceled', 'job.paused') then jsonb_build_object('reason', j.reason) end
    from {schema}.job_rows j where j.id = wanted;
    perform {schema}.make_end_message(j.id, j.kind, event, j.attempt, j.webhook) from {schema}.job_rows j
        where j.id = wanted and event = 'job.canceled';
end $$;

-- What of a job's row no claim can take, or no end be written about; null = nothing. The checks of 1_jobs.sql let none of it in:
-- somebody went past them.
create function {schema}.damage(job {schema}.job_rows) returns text
    language sql stable set search_path = pg_catalog, pg_temp as $$
    select string_agg(format('%s is %s, wanted %s', name, found, wanted), '; ') from (
        select name, moment::text, 'a time of the years 1 to 9999' from {schema}.odd_times(job)
        union all
        select name, number::text, '0 to 1999999999'
            from (values ('attempt', job.attempt), ('forgiven', job.forgiven)) known (name, number)
        where number not between 0 and 1999999999
        union all
        select 'progress_note', octet_length(job.progress_note) || ' bytes', 'at most 4000'
        where octet_length(job.progress_note) > 4000) odd (name, found, wanted)
$$;

-- Fails a job whose row is damaged and which stands nowhere any more: its values are mended, so that everybody can read them.
-- Whoever calls it has locked it, and the holder of its target, and counts it.
create function {schema}.fail_damaged(wanted bigint, token uuid, its_node text, why text,
    out kind text, out target text, out attempt integer, out moment timestamptz, out error text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    first constant timestamptz := '0001-01-01 00:00+00';
    last constant timestamptz := '9999-12-31 23:59:59.999999+00';
begin
    moment := clock_timestamp();
    error := jsonb_build_object('type', 'row_damaged', 'message',
        'its row was changed past the checks of the schema, ' || why)::text;
    -- First within bounds: a queued job may only fail with more attempts than it had.
    update {schema}.job_rows j set attempt = least(greatest(j.attempt, 0), 1000000000), started_at = null, finished_at = null
        where j.id = wanted;
    update {schema}.job_rows j
        set state = 'failed', attempt = j.attempt + 1, forgiven = least(greatest(j.forgiven, 0), j.attempt),
            claim_token = token, node = its_node, worker = null, started_at = null,
            finished_at = moment, last_outcome = 'failed', error = fail_damaged.error::jsonb, reason = null, log = null,
            request = null, requested_at = null, progress_note = left(j.progress_note, 1000),
            run_at = case when j.run_at < first then first when j.run_at > last then last else j.run_at end,
            created_at = case when j.created_at < first then first when j.created_at > moment then moment else j.created_at end,
            cleared_at = null, stale_at = null,
            changed_at = case when j.changed_at between first and last then j.changed_at end,
            scheduled_for = case when j.scheduled_for between first and last then j.scheduled_for end
        where j.id = wanted
        returning j.kind, j.target, j.attempt into kind, target, attempt;
    insert into {schema}.endings (state, kind, at, jobs)
        select 'failed', fail_damaged.kind, moment, int8multirange(int8range(wanted, wanted, '[]'))
            where fail_damaged.target is null;
    insert into {schema}.event_drafts (type, job_ids, kinds, targets, attempts, common)
        values ('job.failed', array[wanted], array[fail_damaged.kind],
                case when fail_damaged.target is not null then array[fail_damaged.target] end,
                array[fail_damaged.attempt], jsonb_build_object('error', {schema}.short_error(fail_damaged.error::jsonb)));
    perform {schema}.make_end_message(j.id, j.kind, 'job.failed', j.attempt, j.webhook) from {schema}.job_rows j
        where j.id = wanted;
    perform {schema}.hand_over(array[fail_damaged.target], true) where fail_damaged.target is not null;
end $$;

-- Ends those of the next jobs in claim order, `bound` stretches of each priority, that no claim can take. Also those that would
-- never be due.
create function {schema}.set_aside(token uuid, its_node text, bound integer)
    returns table (id bigint, kind text, target text, attempt integer, ended_epoch float8, error text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    it record;
    done record;
begin
    for it in
        select job.id, {schema}.damage(job) as found, near.priority, near.run_at, near.kind, near.target
        from {schema}.claimable_priorities levels cross join lateral (
            (select * from {schema}.ready stretch where stretch.priority = levels.priority and stretch.run_at <= clock_timestamp()
             order by stretch.run_at, stretch.first_id limit bound)
          union all
            (select * from {schema}.ready stretch
             where stretch.priority = levels.priority and stretch.run_at > '9999-12-31 23:59:59.999999+00'
             order by stretch.run_at, stretch.first_id limit bound)) near
        cross join lateral generate_series(near.first_id, near.last_id) as one (number)
        join {schema}.job_rows job on job.id = one.number
        where {schema}.damage(job) is not null
    loop
        perform {schema}.lock_job(it.id);
        continue when {schema}.take_out(it.id, it.priority, it.run_at, it.kind, it.target) is null;  -- a claim was first
        select * into done from {schema}.fail_damaged(it.id, token, its_node, 'and no claim could take it: ' || it.found);
        insert into {schema}.count_changes (queued, failed) values (-1, 1);
        return query select it.id, done.kind, done.target, done.attempt, extract(epoch from done.moment)::float8, done.error;
    end loop;
end $$;

-- Ends those of the jobs whose leases have run out, `bound` at most, about which no end could be written.
create function {schema}.set_aside_lost(bound integer)
    returns table (id bigint, kind text, attempt integer, node text, found text)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    it record;
    done record;
begin
    for it in
        select one.number as id, lease.id as lease_id, lease.token, lease.node, lease.target, {schema}.damage(job) as found
        from {schema}.leases lease cross join lateral unnest(lease.jobs) as stretch (ids)
        cross join lateral generate_series(lower(stretch.ids), upper(stretch.ids) - 1) as one (number)
        join {schema}.job_rows job on job.id = one.number
        where lease.expires_at <= clock_timestamp() and {schema}.damage(job) is not null
        order by lease.target, lease.token, lease.id limit bound
    loop
        -- Holders, leases, jobs: in the order of every statement.
        perform from {schema}.target_holders holder where holder.target = it.target for update;
        update {schema}.leases lease set jobs = lease.jobs - int8multirange(int8range(it.id, it.id, '[]'))
            where lease.id = it.lease_id and lease.jobs @> it.id and lease.expires_at <= clock_timestamp();
        continue when not found;  -- it was settled or renewed
        delete from {schema}.leases lease where lease.id = it.lease_id and isempty(lease.jobs);
        delete from {schema}.live_logs said where said.job_id = it.id and said.token = it.token;
        select * into done from {schema}.fail_damaged(it.id, it.token, it.node,
            'and no end could be written about it when its lease had run out: ' || it.found);
        insert into {schema}.count_changes (failed) values (1);
        return query select it.id, done.kind, done.attempt, it.node, it.found;
    end loop;
end $$;

-- As the command of that name, in the words of store/report.py. Returns the state that the job is in now.
create function {schema}.control_or_refuse(action text, wanted bigint) returns text
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    done record;
    states text[];
begin
    select * into done from {schema}.control_job(action, wanted);
    if done.allowed then
        return done.state_after;
    elsif not done.known then
        raise exception 'there is no job %', wanted using errcode = 'no_data_found';
    end if;
    states := array(
        select s from unnest(array['pending', 'queued', 'paused', 'assigned', 'running', 'failed']) with ordinality as o (s, place)
        where {schema}.control_effect(action, s) is not null order by place);
    if done.state_before = any (states) then
        raise exception 'job % is % and is being canceled: it cannot be told to %', wanted, done.state_before, action
            using errcode = 'object_not_in_prerequisite_state';
    end if;
    raise exception 'job % is %: % wants a job that is %', wanted, done.state_before, action,
        concat_ws(' or ', nullif(array_to_string(states[:cardinality(states) - 1], ', '), ''), states[cardinality(states)])
        using errcode = 'object_not_in_prerequisite_state';
end $$;

-- For any program, in its own transaction.
create function {schema}.cancel(id bigint) returns text language sql security definer set search_path = pg_catalog, pg_temp
    as $$ select {schema}.control_or_refuse('cancel', $1) $$;
create function {schema}.pause(id bigint) returns text language sql security definer set search_path = pg_catalog, pg_temp
    as $$ select {schema}.control_or_refuse('pause', $1) $$;
create function {schema}.resume(id bigint) returns text language sql security definer set search_path = pg_catalog, pg_temp
    as $$ select {schema}.control_or_refuse('resume', $1) $$;
create function {schema}.release(id bigint) returns text language sql security definer set search_path = pg_catalog, pg_temp
    as $$ select {schema}.control_or_refuse('release', $1) $$;
create function {schema}.clear(id bigint) returns text language sql security definer set search_path = pg_catalog, pg_temp
    as $$ select {schema}.control_or_refuse('clear', $1) $$;
