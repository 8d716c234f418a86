"""Stores with one rule left out each: what the checker is there to notice."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from tests.checker.examples.model_store import ENDED, LEASED, Row, Store, Told


class NoGuard(Store):
    """A write asks neither for the token nor for the state."""

    def _held(self, job: int, token: str) -> Row | None:
        row = self.rows.get(job)
        return row if row and row.state in LEASED else None


class Ahead(Store):
    @contextmanager
    def shifted(self, field: str, seconds: float) -> Generator[None]:
        """A time of every row lies so much earlier meanwhile."""
        for row in self.rows.values():
            setattr(row, field, getattr(row, field) - seconds)
        yield
        for row in self.rows.values():
            setattr(row, field, getattr(row, field) + seconds)


class EarlyReaper(Ahead):
    """As with a clock that is ahead of the others."""

    def reap(self) -> Told:
        with self.shifted("expires", 6.0):
            return super().reap()


class NoCap(Store):
    def _may_run(self, row: Row) -> bool:
        with patch.object(row, "kind", "report"):
            return super()._may_run(row)


class NoTarget(Store):
    def _may_run(self, row: Row) -> bool:
        with patch.object(row, "target", None):
            return super()._may_run(row)


class TooSoon(Store):
    """Looks at what is due in two seconds."""

    def _may_run(self, row: Row) -> bool:
        with patch.object(row, "due", row.due - 2.0):
            return super()._may_run(row)


class NoBudget(Store):
    def reap(self) -> Told:
        used = {row.id: row.used for row in self.rows.values()}
        for row in self.rows.values():
            row.used = 0
        told = super().reap()
        for row in self.rows.values():
            row.used += used[row.id]
        return told


class ForgetsRequests(Store):
    """A lost lease and a retry forget what was asked for."""

    def _end(self, row: Row, state: str, outcome: str, forgiven: bool) -> None:
        if outcome in {"lost", "retrying", "released", "snoozed"}:
            state = "queued"
        super()._end(row, state, outcome, forgiven)


class ForgetsMessages(Store):
    def _end(self, row: Row, state: str, outcome: str, forgiven: bool) -> None:
        super()._end(row, state, outcome, forgiven)
        if outcome == "lost" and state in ENDED:
            self.messages.pop()


class DeletesEarly(Ahead):
    def delete(self) -> Told:
        with self.shifted("ended_at", 50.0):
            return super().delete()


class CountsAtTheEnd(Store):
    """An attempt that nobody settles is not counted."""

    def _end(self, row: Row, state: str, outcome: str, forgiven: bool) -> None:
        super()._end(row, state, outcome, forgiven)
        if outcome == "lost":
            row.attempt -= 1


class KeepsNoKeys(Store):
    def enqueue(self, number: int, **options: Any) -> Told:
        self.keys.clear()
        return super().enqueue(number, **options)


class TakesDuties(Store):
    """Whoever asks for a duty gets it."""

    def take_duty(self, node: str, term: str) -> Told | None:
        self.term = ("", "", 0.0)
        return super().take_duty(node, term)


class FiresTwice(Store):
    def fire(self, slot: str, number: int) -> Told | None:
        self.fired.pop(slot, None)
        return super().fire(slot, number)


class LosesJobs(Store):
    """What was enqueued in this way was never committed."""

    def enqueue(self, number: int, **options: Any) -> Told:
        if options.get("priority") != 5:
            return super().enqueue(number, **options)
        self.made += 1
        return {"job": self.made}


class PauseIsNotSeen(Store):
    def claim(self, node: str, token: str, count: int) -> Told:
        paused, self.paused = self.paused, False
        told = super().claim(node, token, count)
        self.paused = paused
        return told


# The rule that is broken; what tells so where operations were seen, and where only what real
# daemons leave was ("" = it does not show there).
BROKEN: tuple[tuple[type[Store], str, str], ...] = (
    (NoGuard, "S6", ""),
    (EarlyReaper, "S7", "S7"),
    (NoCap, "S11", "S11"),
    (NoTarget, "S12", "S12"),
    (TooSoon, "S13", "S13"),
    (NoBudget, "S10", "S10"),
    (ForgetsRequests, "S15", ""),
    (ForgetsMessages, "S18", "S18"),
    (DeletesEarly, "S19", "S19"),
    (CountsAtTheEnd, "S10", "S10"),
    (KeepsNoKeys, "S3", ""),
    (TakesDuties, "S17", ""),
    (FiresTwice, "S17", "S2"),
    (LosesJobs, "S1", "S1"),
    (PauseIsNotSeen, "S14", ""),
)
