"""The queue as those see it who size crews by it."""

from __future__ import annotations

import attrs


@attrs.frozen
class Room:
    """How many more jobs the other nodes could run, by what they last said of themselves; and of
    these, those whose ids are lower than the asker's.
    """

    free: int = 0  # with idle workers, or with new ones
    free_before: int = 0
    unhired: int = 0  # with new workers only
    unhired_before: int = 0


@attrs.frozen
class QueueView:
    """What the supervisor sees: bounded, however long the queue is."""

    due: int  # due and claimable, counted up to the limit asked for
    oldest_due_seconds: float  # how long the longest-waiting of them waits; 0 = none
    paused: bool
    parked: bool = False  # there are jobs that wait for their kind's cap; they are not in `due`
    others: Room = Room()  # what the other nodes could do
    lot: int = 0  # the same number for all who see the same first due job
    room: int | None = None  # how many more jobs may be leased; None = no bound was asked about
