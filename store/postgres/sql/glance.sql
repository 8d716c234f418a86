-- glance: whether there is anything to do for a tenant: due jobs that may be claimed or parked ones; leases that ran out
-- One of these a tenant, all in one statement. `observe` is that statement, with a bound of one job.
select '{tenant}'::text, (seen.due > 0 or seen.parked) and not seen.paused,
       seen.parked or exists (select from {schema}.job_rows leased
                              where leased.state in ('assigned', 'running') and leased.lease_expires_at <= clock_timestamp())
from ({observe}) seen (due, oldest, paused, parked)
