-- why_leased: the jobs in hand, at most :bound, each with how long it has been running, and how many there are
select id, kind, node, worker, :now - started_at, count(*) over ()
from job_rows
where state = 'assigned' or state = 'running'
order by id
limit :bound
