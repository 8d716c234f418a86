-- lock_targets_of: takes the rows of those who have the targets of these jobs, in order, before any of the jobs is acted on
select target from {schema}.target_holders
where target in (select job.target from {schema}.job_rows job where job.id = any (%(ids)s::bigint[]) and job.target is not null)
order by target for update
