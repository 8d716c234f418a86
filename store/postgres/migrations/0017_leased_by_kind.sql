-- leased by kind: a claim under a limit counts what is in hand of that kind, and comes by nothing else

drop index {schema}.job_rows_leased;
create index job_rows_leased on {schema}.job_rows (kind, id) where state in ('assigned', 'running');
