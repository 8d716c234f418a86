-- ended_kind: the next kind of which there are jobs to walk through, by one probe; {which} is written out, so that a partial index serves
select kind from job_rows where {which} and state = :state and kind > :kind order by kind limit 1
