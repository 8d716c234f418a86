-- record_attempt: puts the attempt that ends now into the history; only while its job is leased under :token
insert into attempts (job_id, attempt, node, worker, started_at, finished_at, outcome, error, log)
select id, attempt, node, coalesce(:worker, worker), coalesce(started_at, :started_at),
  :finished_at, :outcome, :error, :log
from job_rows
where id = :id and claim_token = :token and state in ('assigned', 'running')
