-- parked_kinds: the kinds that have parked jobs; one probe each
with recursive walk (kind) as (
  select min(kind) from job_rows where parked = 1
  union all
  select (select min(job_rows.kind) from job_rows
          where parked = 1 and job_rows.kind > walk.kind)
  from walk
  where walk.kind is not null
)
select kind from walk where kind is not null
