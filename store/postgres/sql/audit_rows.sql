-- audit_rows: the next `count` jobs behind an id, as far as events tell of them
select id, state, attempt from {schema}.job_rows where id > %(after)s order by id limit %(count)s
