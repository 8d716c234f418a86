-- parked jobs: due, but of a kind of which as many run as may

alter table {schema}.job_rows
    add column parked boolean not null default false,
    add constraint only_waiting_jobs_are_parked check (not parked or state = 'queued');

-- The claim walks this index: what is parked is not in its way.
drop index {schema}.job_rows_claim;
create index job_rows_claim on {schema}.job_rows (priority desc, run_at, id) where state = 'queued' and not parked;
create index job_rows_parked on {schema}.job_rows (kind, priority desc, run_at, id) where parked;

create or replace view {schema}.queue_depth as
select count(*) as queued,
       count(*) filter (where run_at <= clock_timestamp()) as due,
       coalesce(extract(epoch from clock_timestamp() - min(run_at) filter (where run_at <= clock_timestamp())), 0) as oldest_due_seconds
from (select run_at from {schema}.job_rows where state = 'queued' and not parked
      union all select run_at from {schema}.job_rows where parked) waiting;

-- As in the second migration, and what waits no longer is no longer parked.
-- Acts on one job. Returns whether there is such a job, its state before and after, whether its holder has been asked,
-- and whether the action was allowed. What holds the row is waited for; what is decided is decided on its newest version.
create or replace function {schema}.control_job(action text, wanted bigint,
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
            log = null,
            parked = false
        where j.id = wanted;
    insert into {schema}.count_changes (pending, queued, paused, failed, canceled)
        select (effect = 'pending')::int - (job.state = 'pending')::int, (effect = 'queued')::int - (job.state = 'queued')::int,
               (effect = 'paused')::int - (job.state = 'paused')::int, (effect = 'failed')::int - (job.state = 'failed')::int,
               (effect = 'canceled')::int - (job.state = 'canceled')::int;
    if effect = 'queued' then
        perform pg_notify('{channel}', '');
    end if;
end $$;
