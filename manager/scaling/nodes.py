"""How many nodes there is work for, which an autoscaler of nodes follows. Pure. No bound of the
nodes that are there limits it: else there would never be a reason for another.
"""

from __future__ import annotations

from collections.abc import Sequence

from musterd.config.scaling import PolicyName
from musterd.store.nodes import NodeRecord


def wished_workers(nodes: Sequence[NodeRecord]) -> int | None:
    """The workers that the nodes wish for together, each for its share, before limits; None = no
    node that takes jobs has said.
    """
    wishes = [one.wish for one in nodes if one.claims and one.wish is not None]
    return sum(wishes) if wishes else None


def nodes_for(workers: int, max_count: int) -> int:
    """Of `max_count` workers each."""
    return -(-workers // max_count)


def workers_desired(
    work: int, wished: int | None, policy: PolicyName, max_running: int | None = None
) -> int:
    """`work`: jobs in hand, due and soon due. Under `latency` a worker may do several of them
    within their promise, so the nodes' own wish counts, as far as there is work. `max_running`:
    jobs that may run at once, on all nodes; None = any number.
    """
    workers = work
    if policy == "latency" and wished is not None:
        workers = min(work, max(1, wished))
    if max_running is not None:
        workers = min(workers, max_running)
    return workers
