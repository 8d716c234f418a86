-- message_waits: whether a message about this job is still to be sent
select 1 from webhooks where job_id = :id and state = 'waiting' limit 1
