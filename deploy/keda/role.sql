-- The role that KEDA asks as. Run it as the owner of the schema, then give the role a password with \password.
create role musterd_scaler login connection limit 5;
grant usage on schema musterd to musterd_scaler;
grant execute on function musterd.nodes_desired to musterd_scaler;
-- A question takes milliseconds. One that does not is given up, and the number of pods stays as it is.
alter role musterd_scaler set statement_timeout = '5s';
