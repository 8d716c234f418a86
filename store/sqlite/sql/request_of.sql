-- request_of: what the holder of a job is asked for; only while it is leased under :token
select request from job_rows
where id = :id and claim_token = :token and state in ('assigned', 'running')
