"""How many nodes there is work for, which an autoscaler of nodes follows. Pure. No bound of the
nodes that are there limits it: else there would never be a reason for another.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from musterd.config.scaling import PolicyName
from musterd.store.nodes import NodeRecord

NODE_HORIZON_SECONDS = 30.0  # what becomes due within it is work: a new node takes as long to start


@attrs.frozen
class NodeSize:
    """How this node's settings say that work is met."""

    policy: PolicyName
    max_count: int  # workers of a node
    max_running: int | None = None  # jobs that may run at once, on all nodes; None = any number


def wished_workers(nodes: Sequence[NodeRecord]) -> int | None:
    """The workers that the nodes wish for together, each for its share, before limits; None = no
    node that takes jobs has said.
    """
    wishes = [one.wish for one in nodes if one.claims and one.wish is not None]
    return sum(wishes) if wishes else None


def nodes_desired(work: int, wished: int | None, size: NodeSize) -> int:
    """`work`: jobs in hand, due and soon due. Under `latency` a worker may do several of them
    within their promise, so the nodes' own wish counts, as far as there is work.
    """
    workers = work
    if size.policy == "latency" and wished is not None:
        workers = min(work, max(1, wished))
    if size.max_running is not None:
        workers = min(workers, size.max_running)
    return -(-workers // size.max_count)
