"""The log of events: what happened, in an order that never changes behind a reader's back.

An event is written in the transaction that makes it true. Writers at the same time do not wait for
each other, so what they have written is put in order by whoever reads, or by a node now and then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import attrs

from musterd.store.lifecycle import JobState

ORDERED_AT_ONCE = 1_000  # rows; each has the events of one statement
READ_AT_ONCE = 500  # rows
TEXT_LENGTH_MAX = 1_000  # of an error's message or a reason; the job has the whole
EVENTS_A_ROW_MAX = 1_000
PAGE_EVENTS_MAX = 5_000  # the row in which a page reaches so many is its last
ROWS_AT_ONCE = 5_000


class NewEvent(NamedTuple):
    """Something that a node did, which is no write about a job: a hiring, a decision, a start."""

    type: str
    data: Mapping[str, Any]


class Event(NamedTuple):
    """One event as its readers see it. `id` is its position, which no other event ever has."""

    id: int
    at: datetime
    type: str  # as "job.started"
    job_id: int | None
    kind: str | None
    target: str | None
    data: Mapping[str, Any]


@attrs.frozen
class EventFilter:
    """Which events somebody wants; what is left out leaves all in."""

    job_id: int | None = None
    types: frozenset[str] = frozenset()  # whole ("job.failed"), or the part before the dot ("job")
    kind: str | None = None
    target: str | None = None


ALL_EVENTS = EventFilter()


@attrs.frozen
class EventPage:
    """A stretch of the log. `position`: all up to it has been looked at, also what did not fit the
    filter; a reader goes on from there. `more`: there was more to look at.
    """

    events: Sequence[Event]
    position: int
    more: bool


@attrs.frozen
class EventBounds:
    """From where to where the log is kept; both 0 = nothing has ever happened."""

    oldest: int  # the first position that can still be read; newest + 1 where all is gone
    newest: int


class EventLog(Protocol):
    """The log of one store. Errors as for `Engine`."""

    async def record(self, events: Sequence[NewEvent]) -> None:
        """Writes events that belong to no job."""
        ...

    async def order(self) -> int:
        """Puts in order what has been committed, at most `ORDERED_AT_ONCE` rows; gives the newest
        position. Never waits for a writer whose transaction is open.
        """
        ...

    async def read(
        self, after: int, which: EventFilter = ALL_EVENTS, *, rows_max: int = READ_AT_ONCE
    ) -> EventPage:
        """What has been put in order behind a position, at most so many rows of it."""
        ...

    async def bounds(self) -> EventBounds: ...

    async def trim(self, keep_seconds: float, rows_max: int) -> int:
        """Forgets events that are older, at most so many rows; gives how many rows."""
        ...


def fits(event: Event, which: EventFilter) -> bool:
    """Whether somebody wants this event."""
    return (
        (which.job_id is None or event.job_id == which.job_id)
        and (which.kind is None or event.kind == which.kind)
        and (which.target is None or event.target == which.target)
        and wants_type(which, event.type)
    )


def wants_type(which: EventFilter, type_: str) -> bool:
    return not which.types or type_ in which.types or type_.partition(".")[0] in which.types


class AuditRow(NamedTuple):
    """A job, as far as events tell it too."""

    id: int
    state: JobState
    attempt: int


class Draft(NamedTuple):
    """Something that was told and has no position yet. `state`: of a job that is made."""

    type: str
    job_id: int
    state: JobState | None


class Tally(NamedTuple):
    """All at one moment. What is in hand is not kept count of on PostgreSQL: `kept` has no such
    states there.
    """

    newest: int  # the last position of the log
    drafts: Sequence[Draft]  # what follows it, in order
    kept: Mapping[JobState, int]
    counted: Mapping[JobState, int]  # the rows of the table themselves
    enqueued: int  # how many were ever made, as is kept count of


class Fault(NamedTuple):
    """A job that does not stand where it should: it may never be claimed, or twice."""

    job_id: int
    story: str


FAULTS_MAX = 1_000  # are told


class Audit(Protocol):
    """Errors as for `Engine`."""

    async def rows(self, after_id: int) -> Sequence[AuditRow]:
        """The next jobs by id, at most `ROWS_AT_ONCE`."""
        ...

    async def tally(self) -> Tally:
        """Counts the rows of the whole table."""
        ...

    async def faults(self, seconds: float | None = None) -> Sequence[Fault] | None:
        """Jobs that stand in no place, or in two; reads all jobs, for so many seconds at most.
        None = here a job has no place but its row.
        """
        ...
