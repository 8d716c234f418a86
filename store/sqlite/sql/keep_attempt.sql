-- keep_attempt: the attempt that ended last goes into the history, if it stands in the job's own row
insert into attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error, log)
select id, attempt, node, worker, started_at, finished_at, last_outcome, error, log
from job_rows
where id = :id and last_outcome is not null
