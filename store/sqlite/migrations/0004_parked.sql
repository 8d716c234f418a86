-- Parked jobs: due, but of a kind of which as many run as may.

alter table job_rows add column parked integer not null default 0
  constraint only_waiting_jobs_are_parked check (parked = 0 or (parked = 1 and state = 'queued'));

-- The claim walks this index: what is parked is not in its way.
drop index job_rows_claim;

create index job_rows_claim on job_rows (priority desc, run_at, id)
  where state = 'queued' and parked = 0;

create index job_rows_parked on job_rows (kind, priority desc, run_at, id) where parked = 1;
