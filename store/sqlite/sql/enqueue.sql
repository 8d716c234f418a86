-- enqueue: one new job, queued; due at :run_at
insert into job_rows (kind, payload, priority, max_attempts, created_at, run_at)
values (:kind, :payload, :priority, :max_attempts, :now, :run_at)
