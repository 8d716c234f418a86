"""Owns the kinds of work: what each does, when it is retried, and whether it can run here."""
