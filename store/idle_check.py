"""What an idle node sees of a store from where its hints come: whether it may stop asking, and only
listen.
"""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

import attrs


@attrs.frozen
class IdleCheck:
    """`at_rest`: nothing becomes claimable without a hint, but by the passing of time: nothing is
    in hand on any node, or waits for room, and nobody is writing jobs. `due`: there are jobs to
    claim now; a paused queue has none. `next_due_seconds`: until the next job is due; None = there
    is none that is not yet due.
    """

    at_rest: bool
    due: bool
    next_due_seconds: float | None


class IdleChecks(Protocol):
    """One part of an engine."""

    async def check(self, me: UUID) -> IdleCheck | None:
        """Asked over the very connection that hints come by, so that an answer shows that it lives.
        None = hints are not to be relied on: there are none, or nothing came back, or what is there
        is not the store in which the node `me` has said that it lives.
        """
        ...
