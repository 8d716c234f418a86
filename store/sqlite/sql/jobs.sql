-- jobs: a page of jobs, newest first; {which} is written out, not bound, so that a partial index on a state serves; {columns} are those of a `JobRecord`
select {columns}
from job_rows
where {which} and id < :before and (:kind is null or kind = :kind)
  and (:target is null or target = :target)
order by id desc
limit :count
