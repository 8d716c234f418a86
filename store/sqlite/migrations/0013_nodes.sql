-- Nodes: with which configuration the daemon runs, and how busy its machine is.

alter table nodes add column config_generation integer; -- how many it has had since its start
alter table nodes add column config_hash text; -- of what nodes of one store must agree on
alter table nodes add column load real; -- of its machine in the last minute, for each core
