-- why_leased: the jobs in hand, at most `bound`, each with how long it has been running, and how many there are
select id, kind, node, worker, extract(epoch from clock_timestamp() - started_at)::float8, count(*) over ()
from {schema}.job_rows where state in ('assigned', 'running') order by id limit %(bound)s
