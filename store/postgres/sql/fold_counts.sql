-- fold_counts: adds the noted changes, at most `rows` of them; returns how many, to the counts; skips what another node is folding
with folded as (
    delete from {schema}.count_changes
    where ctid = any (array(select ctid from {schema}.count_changes limit %(rows)s for update skip locked))
    returning *
)
update {schema}.job_counts counts
set enqueued = counts.enqueued + s.enqueued, pending = counts.pending + s.pending, queued = counts.queued + s.queued,
    paused = counts.paused + s.paused, succeeded = counts.succeeded + s.succeeded, failed = counts.failed + s.failed,
    canceled = counts.canceled + s.canceled
from (select count(*) as rows, sum(enqueued) as enqueued, sum(pending) as pending, sum(queued) as queued,
             sum(paused) as paused, sum(succeeded) as succeeded, sum(failed) as failed, sum(canceled) as canceled
      from folded) s
where s.rows > 0
returning s.rows
