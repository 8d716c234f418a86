-- ended_jobs: jobs of one kind that ended long enough ago, in the order of their ends; {which} is written out, so that a partial index serves
select finished_at, id from job_rows
where {which} and state = :state and kind = :kind
  and finished_at <= :until and finished_at >= :after_at and (finished_at > :after_at or id > :after_id)
order by finished_at, id
limit :count
