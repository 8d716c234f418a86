"""How a desk is to work: its bounds and its pace."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from musterd.store.job import Caps


@attrs.frozen
class DeskPlan:
    node: str
    lease_seconds: float
    margin_seconds: float
    poll_seconds: float
    batch_max: int
    ahead_seconds: float  # how much work may lie ready, measured in the crew's time; 0 = none
    # Of the moment: caps of kinds, and of all kinds together, on all nodes.
    bounds: Callable[[], tuple[Caps, int | None]] = lambda: ((), None)
