-- nodes: with which configuration a node runs, and how busy its machine is

alter table {schema}.nodes
    add column config_generation bigint,  -- how many it has had since its start
    add column config_hash text,  -- of what nodes of one store must agree on
    add column load double precision;  -- of its machine in the last minute, for each core
