-- due_jobs: the first :count due jobs of one priority, in claim order
select id, kind, payload, attempt, max_attempts, forgiven, run_at, spent, priority, target
from job_rows
where state = 'queued' and parked = 0 and behind = 0 and priority = :priority and run_at <= :now
order by run_at, id
limit :count
