-- delete_key: the key of a job that is deleted, unless its time is not yet over
delete from dedup_keys where key = :key and job_id = :id and (until is null or until <= :now)
