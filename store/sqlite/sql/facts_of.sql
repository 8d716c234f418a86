-- facts_of: what decides whether one job fits a selection
select id, state, kind, target, priority, created_at, finished_at, cleared_at
from job_rows
where id = :id
