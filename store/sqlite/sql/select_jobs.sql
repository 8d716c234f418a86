-- select_jobs: the next jobs by id, with what decides whether they fit; {which} is written out, so that a partial index serves
select id, state, kind, target, priority, created_at, finished_at, cleared_at
from job_rows
where {which} and id > :after and id <= :until
order by id
limit :count
