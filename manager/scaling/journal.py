"""How a node's decisions are packed: a run of like ones takes one row of the store. Pure.

Nothing but the exact times is lost: the ticks of a run count as even, and each was within
`TOLERANCE_SECONDS` of where that puts it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import attrs

from musterd.manager.node.status import Decision
from musterd.store.scaling_journal import RUN_SPAN_MAX, JournalRun

TOLERANCE_SECONDS = 0.25
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
    fields = attrs.asdict(run.first)
    at = datetime.fromtimestamp(fields.pop("at"), UTC)
    return JournalRun(node_id, node, at, datetime.fromtimestamp(run.until, UTC), run.ticks, fields)


def decision_of(run: JournalRun) -> Decision:
    """Its first decision."""
    return Decision(at=run.at.timestamp(), **run.fields)


def unpacked(run: JournalRun) -> list[Decision]:
    """All of its decisions."""
    first, span_seconds = decision_of(run), (run.until - run.at).total_seconds()
    pace = span_seconds / max(1, run.ticks - 1)
    return [attrs.evolve(first, at=first.at + pace * tick) for tick in range(run.ticks)]
