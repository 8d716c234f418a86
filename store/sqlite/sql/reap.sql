-- reap: leases that have run out, the lowest ids first, at most :count
select id, kind, attempt, max_attempts, forgiven, node, lease_expires_at, claim_token, request, target
from job_rows
where (state = 'assigned' or state = 'running') and lease_expires_at <= :now
order by id
limit :count
