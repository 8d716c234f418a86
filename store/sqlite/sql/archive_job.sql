-- archive_job: keeps a job that is deleted
insert into job_archive (id, job, archived_at) values (:id, :job, :now)
