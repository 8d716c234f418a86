-- Keys against doubles: at most one job holds a key. `until` null = until its job has ended.
create table dedup_keys (
  key text primary key,
  job_id integer not null,
  until integer
) without rowid;
