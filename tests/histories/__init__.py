"""Short histories of PostgreSQL: several nodes and users at once on real connections, which break,
stand still and lose replies, and a server that crashes. Each is judged by `tests.checker`, as a
simulated cluster is. One seed makes the plan; what really happened at the same time cannot be had
again, so the history of a failure is kept. See docs/proving-histories.md.
"""
