"""workers: the life of a claim on a node. `claiming/` gets claims and settles them, `worker` and
`attempt` run them, `leases` keeps them, `idleness` decides when to stop asking for more.

Nothing here knows Prometheus, HTTP or the command line: each desk reports to the `JobObserver` that
it was given.
"""
