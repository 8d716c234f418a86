-- leased_of_target: the job of this target that is in hand; there is at most one
select id from job_rows where target = :target and state in ('assigned', 'running')
