-- attempts: the ended attempts of these jobs that were not their last, oldest first
select job_id, attempt, node, worker, started_at, finished_at, outcome, error::text, log
from {schema}.attempts where job_id = any (%(ids)s::bigint[]) order by job_id, attempt
