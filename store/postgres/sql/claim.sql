-- claim: takes the first due jobs in claim order (priority, due time, id), at most `batch`, under one fresh token; none while the queue is paused
-- `limit 2000` bounds what the planner expects; `batch` is what is taken.
-- At the first job with a target it stops, and says so: what those need is asked by claim_targets. So it does at the first of
-- a kind in `stops`, which has a limit that it does not reckon with.
-- Entries of jobs that are long gone stay in the index as long as somebody holds an old snapshot. If it came by many of
-- them it says so, and where in each priority the first job was; given these marks, it begins there.
-- What is between more{ and } is left out of claim_plain, which is for claims without marks and without limits: the
-- server takes an eighth less for a single job.
with recursive now as materialized (
    select clock_timestamp() as at, %(workers)s::int[] as workers, cardinality(%(workers)s::int[]) as idle,
           pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass) as walked_before
),
{levels},
bounded as (
    select due.place_in_table, due.id, due.priority, due.run_at, due.kind, due.target
    from levels cross join lateral (
        select job.ctid as place_in_table, job.id, job.priority, job.run_at, job.kind, job.target from {schema}.job_rows job
        where job.state = 'queued' and not job.parked and not job.behind and job.priority = levels.priority and job.run_at <= (select at from now)
          /*more{*/ and (job.run_at, job.id) >= (levels.first_run_at, levels.first_id) /*}*/
        order by job.run_at, job.id limit 2000 for no key update skip locked) due
    where (select paused_at is null from {schema}.queue_state)
    limit 2000
),
/*more{*/
room as materialized (  -- for jobs of any kind, until as many are leased as may be; without any nothing is locked and nothing moved
    select case when %(most)s::int is not null
                then greatest(0, %(most)s::int - (select count(*)::int from {schema}.job_rows job
                                                  where job.state in ('assigned', 'running'))) end as free
),
/*}*/
met as materialized (
    select *, row_number() over (order by priority desc, run_at, id) as place
    from (select * from bounded limit /*more{*/ case (select free from room) when 0 then 0 else /*}*/ %(scan)s /*more{*/ end /*}*/) first_ones
),
stopped as materialized (  -- where the first of them stands, how many are not before it, and which of both it is
    select place as first_place, (select count(*) from met) - place + 1 as beyond, (target is null)::int as is_limited
    from met where target is not null or kind = any (%(stops)s::text[]) order by place limit 1
),
picked as materialized (select * from met where place < coalesce((select first_place from stopped), %(scan)s + 1)),
/*more{*/
leased as materialized (  -- what is in hand, of kinds with a limit that are among the first
    select cap.kind, cap.most, (select count(*) from {schema}.job_rows job
                                where job.kind = cap.kind and job.state in ('assigned', 'running')) as number
    from unnest(%(cap_kinds)s::text[], %(caps)s::int[]) as cap (kind, most)
    where cap.kind in (select kind from picked)
),
ranked as (
    select picked.id, leased.most - leased.number as free,
           row_number() over (partition by picked.kind order by picked.place) as place
    from leased join picked on picked.kind = leased.kind
),
excess as materialized (select id from ranked where place > free),
parked as (
    update {schema}.job_rows job set parked = true from excess where job.id = excess.id returning job.id
),
/*}*/
placed as (
    select place_in_table, row_number() over (order by place) as place
    from picked /*more{*/ where id not in (select id from excess) /*}*/
    order by picked.place limit /*more{*/ least((select free from room), /*}*/ %(batch)s /*more{*/ ) /*}*/
),
claimed as (
    update {schema}.job_rows job
    set state = case when placed.place <= now.idle then 'running' else 'assigned' end,
        worker = now.workers[placed.place],
        started_at = case when placed.place <= now.idle then now.at end,
        attempt = job.attempt + 1, claim_token = %(token)s, node = %(node)s,
        lease_expires_at = now.at + make_interval(secs => %(lease_seconds)s), heartbeat_at = now.at,
        finished_at = null, last_outcome = null, result = null, log = null, progress = null, progress_note = null
    from placed, now
    where job.ctid = placed.place_in_table  -- it is locked, so it stays where it is
    returning placed.place, job.id, job.kind, job.payload::text as payload, job.attempt, job.max_attempts,
              job.forgiven, extract(epoch from now.at - job.run_at)::float8 as waited_seconds, job.worker,
              job.spent::text as spent, null::text as target
),
noted as (
    insert into {schema}.count_changes (queued) select -count(*) from claimed having count(*) > 0
),
told as (
    insert into {schema}.event_drafts (type, size, job_ids, kinds, attempts, workers, common)
    select case when ahead then 'job.assigned' else 'job.started' end, cardinality(array_agg(id)), array_agg(id), array[kind],
           case when min(attempt) = max(attempt) then array[min(attempt)] else array_agg(attempt) end,
           case when ahead then array[null::int] else array_agg(worker) end, %(common)s::jsonb
    from (select *, worker is null as ahead from claimed) claimed group by ahead, kind
)
select id, kind, payload, attempt, max_attempts, forgiven, waited_seconds, worker, spent, target from (
    select * from claimed
  union all  -- how many were parked, where it stopped, whether no more may be leased, what was come by, and why it stopped
    select null, null, null, null, aside, beyond, is_full, walked, (select is_limited from stopped),
           (select jsonb_agg(jsonb_build_array(priority, run_at, id))::text
            from (select distinct on (priority) priority, run_at, id from met order by priority, run_at, id) firsts
            where walked > %(walked_max)s /*more{*/ or exists (select from marks) /*}*/), null
    from (
        select /*more{*/ (select count(*) from parked)::int + /*}*/ 0 as aside, coalesce((select beyond from stopped), 0)::int as beyond,
               /*more{*/ coalesce((select free from room) <= (select count(*) from claimed), false)::int + /*}*/ 0 as is_full,
               (pg_stat_get_xact_tuples_returned('{schema}.job_rows_claim'::regclass)
                - (select walked_before from now) - (select count(*) from met))::float8 as walked) rest
    where aside > 0 or beyond > 0 or is_full > 0 or walked > %(walked_max)s /*more{*/ or exists (select from marks) /*}*/) found
order by place
