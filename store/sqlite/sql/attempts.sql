-- attempts: the earlier attempts of one job, in order
select attempt, node, worker, started_at, finished_at, outcome, error, log
from attempts
where job_id = :job_id
order by attempt
