-- claims_under: the jobs now leased under one token, in claim order: reads a claim back whose reply was lost
select id, kind, payload::text, attempt, max_attempts, forgiven,
       extract(epoch from heartbeat_at - run_at)::float8 as waited_seconds, worker, spent::text, target
from {schema}.job_rows
where state in ('assigned', 'running') and claim_token = %(token)s
order by priority desc, run_at, id
