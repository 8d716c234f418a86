"""Owns the kinds of work: what each does, when it is retried, whether it can run here."""
