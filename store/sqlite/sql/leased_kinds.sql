-- leased_kinds: how many jobs of each kind are in hand
select kind, count(*) from job_rows
where state = 'assigned' or state = 'running'
group by kind
