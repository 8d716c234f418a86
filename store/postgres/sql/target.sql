-- target: who has a target, or halts it while nobody has it, and who waits: how many, up to `bound`, and the first of them
select holder.job_id, coalesce(holder.reserved, true),
       (select count(*) from (
            select from {schema}.job_rows job where job.behind and job.target = %(target)s limit %(bound)s) behind)::int,
       array(select job.id from {schema}.job_rows job where job.behind and job.target = %(target)s
             order by job.priority desc, job.run_at, job.id limit %(shown)s)
from (select one.job_id, one.reserved from {schema}.target_holders one where one.target = %(target)s
    union all
      (select job.id, true from {schema}.job_rows job
       where job.target = %(target)s and (job.state = 'paused' or job.state = 'failed' and job.cleared_at is null)
         and not exists (select from {schema}.target_holders one where one.target = %(target)s)
       order by job.id limit 1)) holder
