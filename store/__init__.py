"""store: the queue's home. Jobs, leases and their history, in PostgreSQL or in an embedded SQLite
file.

An engine (`engine`) is made of parts, and the protocol of each stands with its values: `jobs`,
`leases`, `control`, `queue`, `nodes` and others. Callers decide what happens to a job; an engine
carries it out in short transactions, and keeps the rules that need what is stored: which state may
follow (`lifecycle`), which token may write, and that a request to cancel or pause goes before a
retry. `wrapped` passes the calls of an engine on, to be measured or to meet a test's faults.
"""
