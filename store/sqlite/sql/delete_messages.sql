-- delete_messages: the messages about a job that is deleted; none of them waits
delete from webhooks where job_id = :id
