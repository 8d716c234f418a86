"""store: the queue's home. Jobs, leases and their history, in PostgreSQL or in an embedded SQLite
file.

Engines translate and never decide: which state follows which is `lifecycle`, what a caller may rely
on is `engine`.
"""
