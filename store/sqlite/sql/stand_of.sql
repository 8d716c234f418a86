-- stand_of: one job before it is acted on
select state, request, target, kind, attempt, cleared_at, webhook from job_rows where id = :id
