"""The decisions of supervisors as a store keeps them: runs of like ones, one row each; beside them
the hours in which they were compared with the model. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

import attrs

from musterd.store.compared_hours import ComparedHour
from musterd.store.words import moment_of, time_text

# What a decision says besides its time, in the order of the store's columns. `manager.node.status`
# has what each means.
FIELDS: tuple[str, ...] = (
    "policy", "default_count", "max_count", "due", "others_free", "share", "room", "busy",
    "size_before", "raw_wish", "because", "decided_by", "slack_seconds", "limited_by", "desired",
    "hired", "taken_back", "retired", "candidate",
)  # fmt: skip
JSON_FIELDS = ("decided_by", "candidate")
RUN_SPAN_MAX = timedelta(hours=1)  # of a row, so that a reader knows how far back to look
FIRST = datetime(1970, 1, 1, tzinfo=UTC)  # before that nothing was decided
READ_MAX = 10_000  # rows at once


def is_due_exact(due: int | None, max_count: int | None, others_free: int | None) -> bool:
    """Whether no more jobs can have been due: a supervisor counts up to twice the workers that all
    nodes could have, and one.
    """
    if due is None or max_count is None:
        return True
    return due <= 2 * (max_count + (others_free or 0))


@attrs.frozen
class JournalRun:
    """`ticks` decisions of one node, all of which say `fields`, evenly from `at` to `until`."""

    node_id: UUID
    node: str
    at: datetime
    until: datetime
    ticks: int
    fields: Mapping[str, Any]

    @property
    def key(self) -> tuple[datetime, UUID]:
        return self.at, self.node_id


class ScalingJournal(Protocol):
    """The journal of one store, of all its nodes. Errors as for `Engine`."""

    async def write(self, runs: Sequence[JournalRun]) -> None:
        """Adds runs of one node, and lets those grow that the store has; may be repeated."""
        ...

    async def read(
        self, since: datetime | None, until: datetime | None, limit: int
    ) -> list[JournalRun]:
        """The newest runs, at most so many, of those that touch this stretch of time; the oldest
        first. None = without an end.
        """
        ...

    async def write_hour(self, hour: ComparedHour) -> None:
        """Adds it; the first one stays where two nodes have compared the same hour."""
        ...

    async def hours(
        self, since: datetime | None, until: datetime | None, limit: int
    ) -> list[ComparedHour]:
        """The newest hours, as `read` gives runs."""
        ...

    async def forget(self, age_seconds: float, batch: int) -> int:
        """Deletes runs and hours that ended longer ago than this, at most so many of each; gives
        how many.
        """
        ...


def run_object(run: JournalRun) -> dict[str, Any]:
    """The run as programs see it."""
    times = {"at": time_text(run.at), "until": time_text(run.until), "ticks": run.ticks}
    counted = (run.fields.get(name) for name in ("due", "max_count", "others_free"))
    exact = {"due_exact": is_due_exact(*counted)}
    return {**times, "node": run.node, "node_id": str(run.node_id), **run.fields, **exact}


def run_from(found: Mapping[str, Any]) -> JournalRun:
    """Reads what `run_object` wrote; raises KeyError or ValueError for what is no such object."""
    times = moment_of(found["at"]), moment_of(found["until"])
    fields = {name: found[name] for name in FIELDS}
    return JournalRun(UUID(found["node_id"]), found["node"], *times, found["ticks"], fields)


def first_at(since: datetime | None) -> datetime | None:
    """Where a reader begins: what began earlier has ended before `since`."""
    return None if since is None or since < FIRST else since - RUN_SPAN_MAX


def fields_of(values: Sequence[Any]) -> dict[str, Any]:
    """From columns in the order of `FIELDS`."""
    found = dict(zip(FIELDS, values, strict=True))
    for name in JSON_FIELDS:
        if found[name] is not None:
            found[name] = json.loads(found[name])
    return found
