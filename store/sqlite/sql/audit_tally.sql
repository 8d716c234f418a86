-- audit_tally: counts the rows of the table by state
select state, count(*) from job_rows group by state
