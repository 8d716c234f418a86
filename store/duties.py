"""Duties: background work that one node at a time does for all. Who does what, and for how long.

A duty is held under a term, which is random and fresh at each take-over, until its lease runs out
on the store's clock. Whoever holds it ends its work before that, by a clock of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

import attrs

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.store.words import time_text

FOLDED_ROWS = 10_000


@attrs.frozen
class Holder:
    """A node that would do a duty. `term` is made by the caller, fresh for each call."""

    node: str
    node_id: UUID
    term: UUID
    lease_seconds: float
    tenant: str = DEFAULT_TENANT  # by what name it knows this store


class DutyReport(NamedTuple):
    """What was done of a duty since its last renewal."""

    duty: str
    term: UUID
    runs: int = 0
    items: int = 0
    errors: int = 0
    last_error: str | None = None  # None = as it was
    run_seconds: float = 0.0  # how long these runs took together
    running_seconds: float | None = None  # of the run under way


@attrs.frozen
class DutyRecord:
    """A duty as people see it. Without a node nobody does it now."""

    duty: str
    node: str | None
    node_id: UUID | None
    acquired_at: datetime | None
    heartbeat_at: datetime | None
    held_seconds: float | None
    lease_seconds_left: float | None
    last_run_at: datetime | None
    runs: int
    items: int
    errors: int
    last_error: str | None
    hand_overs: int  # how often another node has taken it
    run_seconds: float  # how long all runs took together
    running_seconds: float | None  # how long the run under way has taken
    now: datetime  # on the store's clock


@attrs.frozen
class DutyNews:
    """What a node that would take a duty needs to know."""

    free: tuple[str, ...]  # of those asked for: nobody has them, or their lease has run out
    seconds_until_free: float | None  # when the next of the others runs out if it is not renewed
    live_nodes: int


class Duties(Protocol):
    """The duties of one store. Errors as for `Engine`."""

    async def look(self, duties: Sequence[str]) -> DutyNews:
        """Changes nothing and waits for nobody."""
        ...

    async def take(self, duties: Sequence[str], holder: Holder) -> frozenset[str]:
        """Takes those of these duties that nobody has, or whose lease has run out; gives which."""
        ...

    async def renew(self, reports: Sequence[DutyReport], lease_seconds: float) -> frozenset[str]:
        """Extends the leases whose terms still stand, and notes what was done; gives the duties
        that are kept. What is not among them is another's, or nobody's.
        """
        ...

    async def release(self, reports: Sequence[DutyReport]) -> None:
        """Gives duties up, each fenced by its term, and wakes the nodes that would take them."""
        ...

    async def duties(self) -> list[DutyRecord]: ...

    async def fold_counts(self) -> int:
        """Adds to the counts of jobs what writers have noted beside them, at most `FOLDED_ROWS`
        notes; gives how many those were.
        """
        ...


def duty_object(record: DutyRecord, tenant: str) -> dict[str, object]:
    """A duty as every interface shows it."""
    return {
        "duty": record.duty,
        "tenant": tenant,
        "node": record.node,
        "acquired_at": time_text(record.acquired_at),
        "heartbeat_at": time_text(record.heartbeat_at),
        "held_for": record.held_seconds,
        "last_run_at": time_text(record.last_run_at),
        "runs": record.runs,
        "items": record.items,
        "errors": record.errors,
        "last_error": record.last_error,
        "hand_overs": record.hand_overs,
        "run_seconds": record.run_seconds,
        "running_seconds": record.running_seconds,
    }
