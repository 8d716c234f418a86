-- claims_under: the jobs leased under this token, in claim order
select id, kind, payload, attempt, max_attempts, forgiven, heartbeat_at - run_at, worker, spent, target
from job_rows
where (state = 'assigned' or state = 'running') and claim_token = :token
order by priority desc, run_at, id
