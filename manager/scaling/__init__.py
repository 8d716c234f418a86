"""How large the crew is to be: observing, sharing with other nodes, deciding."""
