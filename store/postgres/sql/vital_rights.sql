-- vital_rights: what a daemon needs in this schema and our role may not do; nothing where there is no schema
-- Whoever plans this may ask for a right before it looks at the sort of a thing: hence the cases.
with space as (select oid from pg_namespace where nspname = '{schema_name}'),
wanted as (
    select 'schema {schema_name}' as thing, 'USAGE' as privilege, has_schema_privilege(oid, 'USAGE') as granted, 1 as place
    from space
    union all
    select 'table ' || class.relname, privilege, case when class.relkind = 'r' then has_table_privilege(class.oid, privilege) end, 2
    from space join pg_class class on class.relnamespace = space.oid and class.relkind = 'r',
         unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) privilege
    where class.relname <> 'schema_migrations' or privilege = 'SELECT'
    union all
    select 'sequence ' || class.relname, 'USAGE', case when class.relkind = 'S' then has_sequence_privilege(class.oid, 'USAGE') end, 3
    from space join pg_class class on class.relnamespace = space.oid and class.relkind = 'S'
    union all
    select 'function ' || proc.proname, 'EXECUTE', has_function_privilege(proc.oid, 'EXECUTE'), 4
    from space join pg_proc proc on proc.pronamespace = space.oid
)
select distinct thing, privilege, place from wanted where not granted
order by place, thing, privilege
limit 100
