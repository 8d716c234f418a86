-- held snapshots: as long as somebody holds one, entries of what is gone stay in the indexes, and are walked

-- A claim under a limit counts what is in hand of that kind, and comes by nothing else.
drop index {schema}.job_rows_leased;
create index job_rows_leased on {schema}.job_rows (kind, id) where state in ('assigned', 'running');

-- As in the ninth migration, and what is gone is come by once: by who looks where the first drafts are. One statement
-- looks and takes: of drafts that are committed between two, the later of a job could be taken without the earlier.
create or replace function {schema}.order_events(batch integer) returns bigint
    language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    newest bigint;
begin
    if not exists (select from {schema}.event_drafts) then
        return (select last from {schema}.event_head);
    end if;
    select last into newest from {schema}.event_head for update;
    with first_ones as materialized (
        select min(id) as low, max(id) as high
        from (select id from {schema}.event_drafts order by id limit batch) ordered
    ),
    taken as (
        delete from {schema}.event_drafts
        where id between (select low from first_ones) and (select high from first_ones)
        returning *
    ),
    logged as (
        insert into {schema}.event_log (last, at, type, size, job_ids, kinds, targets, attempts, workers, common, details)
        select newest + sum(size) over (order by id), at, type, size, job_ids, kinds, targets, attempts, workers, common, details
        from taken returning last
    )
    update {schema}.event_head head set last = ended.last
    from (select max(last) as last from logged) ended where ended.last is not null
    returning head.last into newest;
    return coalesce(newest, (select last from {schema}.event_head));
end $$;
