"""What is told of the jobs of a desk, and to whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from musterd.store.leases import Reaped, Settlement, Successes
from musterd.workers.claiming.held import Ignored


class JobObserver(Protocol):
    """All methods return at once and never raise."""

    def claimed(self, kind: str, waited_seconds: Sequence[float]) -> None:
        """Jobs of this kind came into this node's hands; how long each had waited."""
        ...

    def settled(self, settlements: Sequence[Settlement]) -> None:
        """The store has these ends, as they stand here."""
        ...

    def succeeded(self, successes: Successes) -> None:
        """The same, of plain successes."""
        ...

    def stale_writes(self, count: int) -> None:
        """So many settlements were refused, since their leases had been lost."""
        ...

    def lease_lost(self, job_id: int, kind: str, attempt: int) -> None:
        """A job of this node was lost while it was held here; its task is being cancelled."""
        ...

    def held_up(self, job_id: int, kind: str, attempt: int) -> None:
        """The end of an attempt cannot be written yet: an open transaction of somebody else holds
        the job or its target. Reported once of each.
        """
        ...

    def request_ignored(self, ignored: Ignored) -> None:
        """Work goes on that was asked to stop. Reported once of each."""
        ...

    def claim_refused(self, why: str) -> None:
        """The store has a row that it cannot give out: nothing is claimed."""
        ...

    def reaped(self, reaped: Sequence[Reaped]) -> None:
        """This node ended these leases, which had run out, of whatever node."""
        ...
