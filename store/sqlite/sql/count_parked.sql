-- count_parked: how many jobs wait for their kind's cap, counted up to :count
select count(*) from (select 1 from job_rows where parked = 1 limit :count)
