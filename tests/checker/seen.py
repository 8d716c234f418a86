"""What events alone tell of a job. Of one job their order is that of what happened."""

from __future__ import annotations

from dataclasses import dataclass
from sys import intern
from typing import Any

from tests.checker.facts import ENDED, LEASED, Record, moment

BECOMES = {
    "job.released": "queued",
    "job.assigned": "assigned",
    "job.started": "running",
    "job.retrying": "queued",
    "job.requeued": "queued",
    "job.succeeded": "succeeded",
    "job.failed": "failed",
    "job.canceled": "canceled",
    "job.paused": "paused",
    "job.resumed": "queued",
    "job.deleted": "deleted",
}
CLAIMS = frozenset({"job.assigned", "job.started"})
SETTLES = frozenset(
    {"job.retrying", "job.requeued", "job.succeeded", "job.failed", "job.canceled", "job.paused"}
)


@dataclass(slots=True, eq=False)
class Seen:
    """`state` "" = nothing was told of it yet. `since`, `claimed_at` are the store's times."""

    id: int = 0
    state: str = ""
    kind: str = ""
    target: str | None = None
    attempt: int = 0
    used: int = 0
    since: float = 0.0
    line: int = 0
    claimed_at: float = 0.0
    claim_line: int = 0
    node: str = ""
    due: float | None = None
    due_line: int = 0
    made_at: float = 0.0
    cleared: bool = False
    ends: int = 0
    has_target: bool = False  # it was claimed and has not ended, so its target is its own

    @property
    def in_hand(self) -> bool:
        return self.state in LEASED

    @property
    def halts(self) -> bool:
        return self.target is not None and (
            self.state == "paused" or (self.state == "failed" and not self.cleared)
        )

    def is_claim(self, record: Record) -> bool:
        """Whether this event tells of a new claim, not of the start of one that was told before."""
        if record["type"] == "job.assigned":
            return True
        if record["type"] != "job.started":
            return False
        return self.state != "assigned" or data_of(record).get("attempt") != self.attempt

    def take_in(self, line: int, record: Record) -> None:
        type_, at, data = record["type"], moment(record["at"]), data_of(record)
        if type_ == "job.cleared":
            self.cleared = True
        state = BECOMES.get(type_)
        if type_ == "job.enqueued":
            state = intern(data.get("state") or "queued")
            self.kind, self.target = record.get("kind") or "", record.get("target")
            self.made_at = at
        if state is None:
            return
        if self.is_claim(record):
            self._take_claim(line, at, data)
        elif type_ in SETTLES:
            self._take_settlement(line, record, data)
        elif type_ == "job.resumed":
            self.used, self.due = 0, None
            self.cleared = False
        self.state, self.since, self.line = state, at, line
        if state in ENDED:
            self.ends += 1
            self.has_target = False

    def _take_claim(self, line: int, at: float, data: dict[str, Any]) -> None:
        self.attempt = data.get("attempt", self.attempt + 1)
        self.used += 1
        self.claimed_at, self.claim_line, self.due = at, line, None
        self.node = intern(data.get("node") or "")
        self.has_target = True

    def _take_settlement(self, line: int, record: Record, data: dict[str, Any]) -> None:
        if forgiven(record):
            self.used -= 1
        if data.get("run_at") is not None:
            self.due, self.due_line = moment(data["run_at"]), line


def data_of(record: Record) -> dict[str, Any]:
    return record.get("data") or {}


def forgiven(record: Record) -> bool:
    """Whether an attempt that ended so burned none."""
    data = data_of(record)
    if record["type"] == "job.requeued":
        return data.get("outcome") in {"released", "snoozed"}
    return record["type"] == "job.paused" and data.get("attempt") is not None


def is_lost(record: Record) -> bool:
    """Whether it tells of a lease that ran out."""
    data = data_of(record)
    if record["type"] == "job.requeued":
        return data.get("outcome") == "lost"
    error: dict[str, Any] = data.get("error") or {}
    return record["type"] == "job.failed" and error.get("type") == "lease_lost"
