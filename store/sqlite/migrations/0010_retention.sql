-- Retention: jobs that have ended go stale, and are deleted.

-- Jobs that have ended and are not yet stale, kind by kind in the order of their ends: what a pass walks along. A job
-- that halts its target is not among them, until somebody clears it.
create index job_rows_ended on job_rows (state, kind, finished_at, id)
  where (state = 'succeeded' or state = 'failed' or state = 'canceled') and stale_at is null
    and (state <> 'failed' or target is null or cleared_at is not null);

-- The stale ones: what the next pass walks along.
create index job_rows_stale on job_rows (state, kind, finished_at, id) where stale_at is not null;

-- Jobs that were deleted, as every interface showed them, if `[retention] archive` asks for it. musterd never reads it.
create table job_archive (
  id integer primary key,
  job text not null,
  archived_at integer not null
);

-- What outlives its job, by the time from which nobody needs it.
create index webhooks_of_the_deleted on webhooks (ended_at) where type = 'job.deleted' and state <> 'waiting';
create index dedup_keys_until on dedup_keys (until) where until is not null;
