"""The verbs: one module each, or one for a few that share their work."""
