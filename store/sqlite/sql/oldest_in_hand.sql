-- oldest_in_hand: the first :bound jobs in hand: when each started, and when its lease ends
select id, kind, started_at, lease_expires_at from job_rows
where state = 'assigned' or state = 'running'
order by id
limit :bound
