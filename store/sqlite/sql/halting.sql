-- halting: the first job that halts this target
select id from job_rows
where target = :target and (state = 'paused' or (state = 'failed' and cleared_at is null))
order by id
limit 1
