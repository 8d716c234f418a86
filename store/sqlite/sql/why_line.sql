-- why_line: the first :count claimable jobs of one priority: those without a target by kind, with how many stand before this job; then the others one by one, in claim order, each with whoever has its target
with line as materialized (
  select id, kind, run_at, target from job_rows
  where state = 'queued' and parked = 0 and behind = 0 and priority = :priority and run_at <= :now
  order by run_at, id
  limit :count
)
select null, kind, null, null, count(*), max(id = :id),
  sum(:priority > :own_priority
    or (:priority = :own_priority and (run_at, id) < (:own_run_at, :id)))
from line where target is null
group by kind
union all
select * from (
  select line.id, line.kind, line.target, target_holders.job_id, 1, line.id = :id,
    :priority > :own_priority
      or (:priority = :own_priority and (line.run_at, line.id) < (:own_run_at, :id))
  from line left join target_holders on target_holders.target = line.target
  where line.target is not null
  order by line.run_at, line.id
)
