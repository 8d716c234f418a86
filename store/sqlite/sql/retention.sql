-- Retention: jobs that have ended go stale, and are deleted.

-- ended_kind: the next kind of which there are jobs to walk through, by one probe; {which} is written out, so that a partial index
-- serves
select kind from job_rows where {which} and state = :state and kind > :kind order by kind limit 1

-- ended_jobs: jobs of one kind that ended long enough ago, in the order of their ends; {which} is written out, so that a partial
-- index serves
select finished_at, id from job_rows
where {which} and state = :state and kind = :kind
  and finished_at <= :until and finished_at >= :after_at and (finished_at > :after_at or id > :after_id)
order by finished_at, id
limit :count

-- mark_stale: notes that the time of a job that has ended has come
update job_rows set stale_at = :now where id = :id returning id, kind, target, attempt

-- delete_expired: deletes a job; what belongs to it is deleted by statements of its own
delete from job_rows where id = :id returning id, kind, target, attempt, dedup_key

-- delete_attempts: the earlier attempts of a job that is deleted
delete from attempts where job_id = :id

-- delete_phases: the phases of a job that is deleted
delete from job_phases where job_id = :id

-- delete_messages: the messages about a job that is deleted; none of them waits
delete from webhooks where job_id = :id

-- delete_key: the key of a job that is deleted, unless its time is not yet over
delete from dedup_keys where key = :key and job_id = :id and (until is null or until <= :now)

-- archive_job: keeps a job that is deleted
insert into job_archive (id, job, archived_at) values (:id, :job, :now)

-- forget_keys: deletes keys whose time is over
delete from dedup_keys where key in (
  select key from dedup_keys where until is not null and until <= :now order by until limit :count
)

-- forget_messages: deletes messages of deleted jobs that have long been sent
delete from webhooks where id in (
  select id from webhooks
  where type = 'job.deleted' and state <> 'waiting' and ended_at <= :until order by ended_at limit :count
)
