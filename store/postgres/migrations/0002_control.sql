-- control of single jobs: requests to their holders, progress, log, what was spent, keys against doubles

alter table {schema}.job_rows
    add column dedup_key     text,
    add column request       text,
    add column requested_at  timestamptz,
    add column progress      real,
    add column progress_note text,
    add column log           text,
    add column spent         jsonb,
    add column cleared_at    timestamptz,
    add constraint only_a_holder_can_be_asked check (
        request is null or (request in ('cancel', 'pause') and state in ('assigned', 'running'))),
    add constraint progress_is_in_percent check (progress between 0 and 100),
    add constraint dedup_key_is_short check (char_length(dedup_key) between 1 and 200);

alter table {schema}.attempts add column log text;

-- As in the first migration, and a waiting job may be paused.
drop trigger job_lifecycle on {schema}.job_rows;
create trigger job_lifecycle before update of state on {schema}.job_rows for each row
    when (old.state <> new.state and old.state || '>' || new.state not in (
        'pending>queued', 'pending>canceled',
        'queued>assigned', 'queued>running', 'queued>canceled', 'queued>paused',
        'assigned>running', 'assigned>queued', 'assigned>succeeded', 'assigned>failed',
        'assigned>canceled', 'assigned>paused',
        'running>queued', 'running>succeeded', 'running>failed', 'running>canceled', 'running>paused',
        'paused>queued', 'paused>canceled', 'failed>queued'))
    execute function {schema}.refuse_transition();

create or replace view {schema}.jobs as
select id, kind, state, payload, result, error, reason, priority, attempt, max_attempts,
       created_at, run_at, started_at, finished_at,
       case when state in ('assigned', 'running') then node || coalesce('/' || worker, '') end as lease_owner,
       lease_expires_at, heartbeat_at,
       dedup_key,
       request is not distinct from 'cancel' as cancel_requested,
       jsonb_build_object(
           'overall', case state when 'succeeded' then 100 else coalesce(floor(progress + 0.5)::int, 0) end,
           'phase', null, 'phases', '[]'::jsonb, 'note', progress_note) as progress,
       cleared_at
from {schema}.job_rows;

-- Whether an action is allowed in a state, and what it makes of the job: a new state, or 'ask' = its holder is asked.
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

-- Acts on one job. Returns whether there is such a job, its state before and after, whether its holder has been asked,
-- and whether the action was allowed. What holds the row is waited for; what is decided is decided on its newest version.
create function {schema}.control_job(action text, wanted bigint,
    out known boolean, out state_before text, out state_after text, out requested boolean, out allowed boolean)
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    job record;
    effect text;
    moment timestamptz;
begin
    select j.state, j.request, j.last_outcome into job from {schema}.job_rows j
        where j.id = wanted for no key update;
    known := job.state is not null;
    state_before := job.state;
    state_after := job.state;
    requested := false;
    effect := {schema}.control_effect(action, job.state);
    -- A cancel that was asked for is not taken back by a pause.
    allowed := effect is not null and not (action = 'pause' and job.request is not distinct from 'cancel');
    if not allowed then
        return;
    end if;
    moment := clock_timestamp();
    if effect = 'ask' then
        requested := true;
        update {schema}.job_rows j set request = action, requested_at = moment where j.id = wanted;
        perform pg_notify('{channel}', wanted::text);
        return;
    end if;
    state_after := effect;
    if action = 'clear' and effect = 'failed' then
        update {schema}.job_rows j set cleared_at = coalesce(j.cleared_at, moment) where j.id = wanted;
        return;
    end if;
    -- The attempt that ended last goes into the history: the job's own row tells of its next, or of its end.
    insert into {schema}.attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error, log)
        select j.id, j.attempt, j.node, j.worker, j.started_at, j.finished_at, j.last_outcome,
               j.error, j.log
        from {schema}.job_rows j where j.id = wanted and j.last_outcome is not null;
    update {schema}.job_rows j
        set state = effect,
            run_at = case when action = 'resume' then moment else j.run_at end,
            finished_at = case when effect = 'canceled' then moment else j.finished_at end,
            cleared_at = case when action = 'clear' then moment end,
            reason = case action when 'cancel' then 'canceled on request' when 'clear' then 'cleared on request'
                                 when 'pause' then 'Job was interrupted by user' end,
            forgiven = case when action = 'resume' then j.attempt else j.forgiven end,
            max_attempts = case when action = 'resume' then j.max_attempts + j.attempt - j.forgiven
                                else j.max_attempts end,
            last_outcome = null,
            log = null
        where j.id = wanted;
    insert into {schema}.count_changes (pending, queued, paused, failed, canceled)
        select (effect = 'pending')::int - (job.state = 'pending')::int, (effect = 'queued')::int - (job.state = 'queued')::int,
               (effect = 'paused')::int - (job.state = 'paused')::int, (effect = 'failed')::int - (job.state = 'failed')::int,
               (effect = 'canceled')::int - (job.state = 'canceled')::int;
    if effect = 'queued' then
        perform pg_notify('{channel}', '');
    end if;
end $$;

revoke execute on all functions in schema {schema} from public;
