-- parked_kinds: the kinds that have parked jobs; one probe each
with recursive walk (kind) as (
    (select job.kind from {schema}.job_rows job where job.parked order by job.kind limit 1)
  union all
    select (select job.kind from {schema}.job_rows job where job.parked and job.kind > walk.kind
            order by job.kind limit 1)
    from walk where walk.kind is not null
)
select kind from walk where kind is not null
