"""A worker's place at the desk: what it has in hand, and whether it is to leave."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import trio

from musterd.workers.claiming.held import Held


@attrs.define(eq=False)
class Seat:
    """`retiring`: finishes its job, then leaves. A retiring worker may be taken back until it has
    left.
    """

    worker: int
    held: Held | None = None
    retiring: bool = False
    given: Held | None = None  # handed over while it waited, not yet taken in hand
    free_since_local: float | None = None  # its last job ended then, and no other task ran since
    bell: trio.Event | None = None  # set = come and look; there while it waits

    @property
    def is_idle(self) -> bool:
        return self.held is None and self.given is None

    def ring(self) -> None:
        if self.bell is not None:
            self.bell.set()

    def hand(self, held: Held) -> None:
        self.given = held
        self.ring()

    def is_stuck(self, now_local: float, seconds: float) -> bool:
        """Whether its present job has taken longer than that already."""
        started = self.held.started_local if self.held else None
        return started is not None and now_local - started > seconds


def count_hands(seats: Iterable[Seat], stuck_seconds: float) -> int:
    """Workers that will stay and may soon be free."""
    now = trio.current_time()
    return sum(not (seat.retiring or seat.is_stuck(now, stuck_seconds)) for seat in seats)
