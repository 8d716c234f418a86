-- enqueue: one new job, :state; due at :run_at
insert into job_rows (kind, payload, priority, max_attempts, created_at, run_at, state, dedup_key, target, webhook)
values (:kind, :payload, :priority, :max_attempts, :now, :run_at, :state, :dedup_key, :target, :webhook)
