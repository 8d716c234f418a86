"""How a node's decisions are packed: a run of like ones takes one row of the store. Pure.

Nothing but the exact times is lost: the ticks of a run count as even, and each was within
`TOLERANCE_SECONDS` of where that puts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import attrs

from musterd.manager.node.status import Decision
from musterd.store.compared_hours import ComparedHour
from musterd.store.scaling_journal import FIELDS, RUN_SPAN_MAX, JournalRun

TOLERANCE_SECONDS = 0.25
MICROSECOND = timedelta(microseconds=1)
SPAN_SECONDS_MAX = RUN_SPAN_MAX.total_seconds()


@attrs.frozen
class Run:
    """`ticks` decisions in a row that say what `first` says, the last one at `until`. Their pace is
    within the two bounds, in seconds from tick to tick.
    """

    first: Decision
    until: float
    ticks: int = 1
    pace_min: float = 0.0
    pace_max: float = float("inf")

    def extended(self, by: Decision) -> Run | None:
        """With one more decision; None = it does not belong to this run."""
        since_first = by.at - self.first.at
        pace = since_first / self.ticks
        is_even = self.pace_min <= pace <= self.pace_max
        if not is_even or by.at < self.until or since_first > SPAN_SECONDS_MAX:
            return None
        if attrs.evolve(by, at=self.first.at) != self.first:
            return None
        # Each pace within these puts the new tick, too, where it was.
        least = max(self.pace_min, (since_first - TOLERANCE_SECONDS) / self.ticks)
        most = min(self.pace_max, (since_first + TOLERANCE_SECONDS) / self.ticks)
        return Run(self.first, by.at, self.ticks + 1, least, most)


def run_of(decision: Decision) -> Run:
    return Run(decision, decision.at)


def row_of(run: Run, node_id: UUID, node: str) -> JournalRun:
    fields = {name: getattr(run.first, name) for name in FIELDS}
    at = datetime.fromtimestamp(run.first.at, UTC)
    return JournalRun(node_id, node, at, datetime.fromtimestamp(run.until, UTC), run.ticks, fields)


def decision_of(run: JournalRun) -> Decision:
    """Its first decision."""
    return Decision(at=run.at.timestamp(), **run.fields)


def unpacked(run: JournalRun) -> list[Decision]:
    """All of its decisions."""
    first, span_seconds = decision_of(run), (run.until - run.at).total_seconds()
    pace = span_seconds / max(1, run.ticks - 1)
    return [attrs.evolve(first, at=first.at + pace * tick) for tick in range(run.ticks)]


def packed(decisions: Iterable[Decision], node_id: UUID, node: str) -> list[JournalRun]:
    """The rows for decisions in the order in which they were made."""
    runs: list[Run] = []
    for one in decisions:
        longer = runs[-1].extended(one) if runs else None
        if longer is None:
            runs.append(run_of(one))
        else:
            runs[-1] = longer
    return [row_of(run, node_id, node) for run in runs]


@attrs.frozen
class Period:
    """A period of time, of which the newest `limit` rows are wanted; None = without an end."""

    since: datetime | None
    until: datetime | None
    limit: int

    def has(self, run: JournalRun) -> bool:
        return (self.since is None or run.until >= self.since) and (
            self.until is None or run.at <= self.until
        )


@attrs.frozen
class JournalPage:
    """Rows of the journal, the oldest first, and the compared hours of their time. `earlier_until`:
    the end of the period that has those before them; None = there are none. `is_whole` False: the
    store did not answer, these are the latest decisions of one node.
    """

    runs: Sequence[JournalRun]
    earlier_until: datetime | None = None
    is_whole: bool = True
    hours: Sequence[ComparedHour] = ()

    def hours_since(self, since: datetime | None) -> datetime | None:
        """From when on it has the hours of a period that begins then."""
        return since if self.earlier_until is None else self.runs[0].at


def page_of(
    period: Period, stored: Sequence[JournalRun], fresh: Sequence[JournalRun]
) -> JournalPage:
    """`fresh`: what a node has not written yet; takes the place of what the store has of it."""
    found = {run.key: run for run in stored} | {run.key: run for run in fresh if period.has(run)}
    runs = [found[key] for key in sorted(found)]
    shown = runs[-period.limit :]
    earlier = shown[0].at - MICROSECOND if len(shown) < len(runs) else None
    return JournalPage(shown, earlier)
