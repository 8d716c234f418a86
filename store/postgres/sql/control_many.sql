-- control_many: acts on those of these jobs that still fit, as control does on one; skips rows that somebody else writes to
-- All are locked before the first is acted on: to act on one may write to the next of its target, which a lock that is
-- taken after that would pass by.
-- It waits for no row while it holds others, so that it cannot get into a deadlock with claims and settlements.
-- Returns the ids done, of those the ones whose holders were asked, the ids refused, and those that fit but were locked.
with picked as materialized (
    select id from {schema}.job_rows
    where id = any (%(ids)s::bigint[]) and state = any (%(states)s::text[]) and cleared_at is null
      and (%(older)s::float8 is null
           or case when state in ('succeeded', 'failed', 'canceled') then finished_at else created_at end
              < clock_timestamp() - make_interval(secs => %(older)s::float8))
    order by id for no key update skip locked
),
acted as materialized (
    select one.id, done.requested, done.allowed
    from unnest(array(select id from picked)) as one (id) cross join lateral {schema}.control_job(%(action)s, one.id) done
)
select array(select id from acted where allowed), array(select id from acted where requested),
       array(select id from acted where not allowed),
       array(select id from {schema}.job_rows
             where id = any (%(ids)s::bigint[]) and state = any (%(states)s::text[]) and cleared_at is null
               and id <> all (array(select id from acted)))
