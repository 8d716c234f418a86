"""What a crowded seed wants beside everything else: crews of more workers than any statement takes
jobs at once, and more jobs than they have hands.
"""

from __future__ import annotations

import json
import random

from tests.simulation.users import Drawn

CREW = 1050  # renewals in one statement: 1,000
KNOBS = {
    "workers__default_count": CREW,
    "workers__max_count": CREW,
    "limits__claim_ahead_ms": 1000,
    "limits__max_running": 0,
    "duties__rotate_seconds": 20,
}
NODES_MAX = 2
LONG_JOBS = 1100  # for each node
BRIEF_JOBS = 1500
AT_ONCE = 250  # jobs in one request


def draw(rng: random.Random, seconds: float) -> list[Drawn]:
    """Brief jobs while things go wrong."""
    brief = {"kind": "brief", "payload": json.dumps({"steps": []})}
    return _enqueue(rng, rng.uniform(0.5, seconds / 3), [brief] * BRIEF_JOBS)


def draw_calm(rng: random.Random, lease: float, nodes: int) -> list[Drawn]:
    """Once nothing goes wrong any more, as many as there are workers, which outlast their leases:
    now none may be lost.
    """
    long = {"kind": "plain", "payload": json.dumps({"steps": [1.2 * lease]})}
    return _enqueue(rng, 0.0, [long] * LONG_JOBS * nodes)


def _enqueue(rng: random.Random, at: float, wanted: list[dict[str, str]]) -> list[Drawn]:
    found: list[Drawn] = []
    for first in range(0, len(wanted), AT_ONCE):
        jobs = wanted[first : first + AT_ONCE]
        found.append((at, "enqueue", {"client": "crowd", "jobs": jobs}))
        at += rng.uniform(0.0, 0.3)
    return found
