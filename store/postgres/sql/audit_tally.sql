-- audit_tally: at one moment the last position, what was told behind it, the counts that are kept, and those of the table's rows
with changes as (
    select coalesce(sum(enqueued), 0) as enqueued, coalesce(sum(pending), 0) as pending, coalesce(sum(queued), 0) as queued,
           coalesce(sum(paused), 0) as paused, coalesce(sum(succeeded), 0) as succeeded,
           coalesce(sum(failed), 0) as failed, coalesce(sum(canceled), 0) as canceled
    from {schema}.count_changes
),
counted as (
    select jsonb_object_agg(state, number) as by_state
    from (select state, count(*) as number from {schema}.job_rows group by state) grouped
),
told as (
    select jsonb_agg(jsonb_build_array(type, job_ids, common ->> 'state') order by id) as drafts
    from {schema}.event_drafts where job_ids is not null
)
select head.last, coalesce(told.drafts, '[]'),
       jsonb_build_object('pending', c.pending + d.pending, 'queued', c.queued + d.queued, 'paused', c.paused + d.paused,
                          'succeeded', c.succeeded + d.succeeded, 'failed', c.failed + d.failed, 'canceled', c.canceled + d.canceled),
       coalesce(counted.by_state, '{}'), (c.enqueued + d.enqueued)::bigint
from {schema}.event_head head, {schema}.job_counts c, changes d, counted, told
