-- held: a job that is leased under :token, as it stands before something is written about it
select id, kind, target, attempt, state, node, worker, request, webhook
from job_rows
where id = :id and claim_token = :token and state in ('assigned', 'running')
