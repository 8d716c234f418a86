"""workers: the life of a claim on a node. `claiming/` gets claims and settles them, `worker` runs
them, `leases` renews them, `idleness` says how seldom to ask for more.

Nothing here knows Prometheus, HTTP or the command line: each desk reports to the `JobObserver` that
it was given.
"""
