-- forget_nodes: nodes whose last sign of life is older than :before are forgotten
delete from nodes where heartbeat_at < :before
