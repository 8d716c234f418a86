-- phases: the phases of one job, in order; where it never started, what is said of its kind
select name, state, progress, result, attempts, started_at, finished_at from (
  select place, name, state, progress, result, attempts, started_at, finished_at
  from job_phases where job_id = :job_id
  union all
  select said.key, said.value, 'pending', null, null, 0, null, null
  from job_rows job join kind_rules rule on rule.kind = job.kind, json_each(rule.phases) said
  where job.id = :job_id and not exists (select 1 from job_phases where job_id = :job_id)
)
order by place
