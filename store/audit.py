"""What is read of a store to compare it with its own log: values, and what engines promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from musterd.store.lifecycle import JobState

ROWS_AT_ONCE = 5_000


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


class Audit(Protocol):
    """Errors as for `Engine`."""

    async def rows(self, after_id: int) -> Sequence[AuditRow]:
        """The next jobs by id, at most `ROWS_AT_ONCE`."""
        ...

    async def tally(self) -> Tally:
        """Counts the rows of the whole table."""
        ...
