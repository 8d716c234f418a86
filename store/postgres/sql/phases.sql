-- phases: the phases of these jobs, in order; of those that never started, what is said of their kinds
select job_id, name, state, progress, result::text, attempts, started_at, finished_at
from (
    select job_id, place, name, state, progress, result, attempts, started_at, finished_at
    from {schema}.job_phases where job_id = any (%(ids)s::bigint[])
  union all
    select job.id, said.place, said.name, 'pending', null, null, 0, null, null
    from {schema}.job_rows job
    join {schema}.kind_rules rule on rule.kind = job.kind
    cross join lateral unnest(rule.phases) with ordinality as said (name, place)
    where job.id = any (%(ids)s::bigint[])
      and not exists (select from {schema}.job_phases phase where phase.job_id = job.id)
) phases
order by job_id, place
