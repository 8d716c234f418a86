-- settled_already: which of these rejected settlements had been written, their own reply being lost
select ended.id
from unnest(%(ids)s::bigint[], %(tokens)s::uuid[], %(attempts)s::int[], %(states)s::text[], %(outcomes)s::text[])
     as ended (id, token, attempt, state, outcome)
where exists (select from {schema}.job_rows job
              where job.id = ended.id and job.claim_token = ended.token and job.attempt = ended.attempt
                and (job.state = ended.state and ended.state <> 'queued' and job.last_outcome = ended.outcome
                     -- a request had made it end, or pause
                     or job.state in ('canceled', 'paused') and ended.state in ('queued', 'paused')
                        and job.last_outcome <> 'lost'))
   or exists (select from {schema}.attempts past
              where past.job_id = ended.id and past.attempt = ended.attempt
                and (past.outcome = ended.outcome or past.outcome = 'failed' and ended.outcome = 'retrying'))
