-- roles: three roles for other programs, to be granted to those who log in; safe to run again
do $$
declare
    role text;
begin
    foreach role in array array['{schema_name}_enqueue', '{schema_name}_read', '{schema_name}_daemon'] loop
        if not exists (select from pg_roles where rolname = role) then
            execute format('create role %I nologin', role);
        end if;
    end loop;
end $$;

grant usage on schema {schema} to {enqueue}, {read}, {daemon};

-- May call what is meant to be called, and touches no table.
grant execute on function {schema}.enqueue, {schema}.enqueue_many, {schema}.cancel, {schema}.pause,
    {schema}.resume, {schema}.release, {schema}.clear to {enqueue};

-- Sees how jobs stand, but neither payload, result, log, message of an error, nor key.
grant select on {schema}.jobs_without_payload, {schema}.queue_depth to {read};

-- What a daemon needs that does not migrate ([store] migrate = false).
grant select, insert, update, delete on all tables in schema {schema} to {daemon};
grant usage on all sequences in schema {schema} to {daemon};
grant execute on all functions in schema {schema} to {daemon};
