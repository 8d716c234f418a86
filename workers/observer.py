"""What the desk and the workers report to the outside. Plain synchronous calls: nothing can come
between a commit and its count.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from musterd.store.leases import Reaped, Settlement, Successes
from musterd.store.lifecycle import Request

Where = Literal["child", "attempt", "runner", "note", "start"]  # what it was contained in
PLACES: tuple[Where, ...] = ("child", "attempt", "runner", "note", "start")


class Ignored(NamedTuple):
    """A request that has not been obeyed in time."""

    job_id: int
    kind: str
    attempt: int
    request: Request
    seconds: float  # since the work was asked to stop


class Contained(NamedTuple):
    """Something went wrong that should not, and was kept from going further: it cost one attempt,
    one message, one connection.
    """

    where: Where
    kind: str | None  # of the job in hand, if there was one
    job_id: int | None
    error: BaseException


def log_contained(what: Contained) -> None:
    """For those who have nobody to report to."""
    logging.getLogger("musterd").error("fault contained", exc_info=what.error)


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

    def request_ignored(self, ignored: Ignored) -> None:
        """Work goes on that was asked to stop. Reported once of each."""
        ...

    def claim_refused(self, why: str) -> None:
        """The store has a row that it cannot give out as it stands: nothing is claimed."""
        ...

    def reaped(self, reaped: Sequence[Reaped]) -> None:
        """This node ended these leases, which had run out, of whatever node."""
        ...
