-- forget_phase: the kind of this job has no such phase any more
delete from job_phases where job_id = :job_id and name = :name
