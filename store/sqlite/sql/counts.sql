-- counts: jobs by state, and how many were ever enqueued
select name, number from job_counts
