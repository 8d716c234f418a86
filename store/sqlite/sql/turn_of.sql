-- turn_of: how one job of a target stands, and its place in claim order
select state, cleared_at, priority, run_at from job_rows where id = :id and target = :target
