-- count_behind: how many jobs stand behind the holders of their targets, counted up to :count
select count(*) from (select 1 from job_rows where behind = 1 limit :count)
