-- live_nodes: how many nodes take jobs and have not been silent for too long
select count(*) from nodes where phase = 'running' and heartbeat_at > :now - :pauses * pause_seconds * 1e6
