"""The verbs: one module for each, or for a few that share their work."""
