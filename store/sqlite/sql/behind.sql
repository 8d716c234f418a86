-- behind: the first :count jobs that stand behind the holder of this target, in claim order
select id, priority, run_at from job_rows
where behind = 1 and target = :target
order by priority desc, run_at, id
limit :count
