"""What the model's nodes and clients have in common: a clock, a store, and a line to it that loses
and delays.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.checker.examples.model_store import (
    BUDGET,
    CAPS,
    KEEP_SECONDS,
    LEASE_SECONDS,
    Store,
    Told,
)
from tests.checker.writing import History

CALM_SECONDS = 110.0
MARGIN_SECONDS, HEARTBEAT_SECONDS, POLL_SECONDS, WORKERS = 2.0, 2.0, 0.5, 3
FAULTS_UNTIL_SECONDS, END_SECONDS = 60.0, 1_000.0
HEADER: dict[str, Any] = {
    "lease_seconds": LEASE_SECONDS,
    "margin_seconds": MARGIN_SECONDS,
    "caps": CAPS,
    "budgets": {"": BUDGET},
    "retention": dict.fromkeys(("succeeded", "failed", "canceled"), KEEP_SECONDS),
    "webhooks": True,
    "schedules": True,
    "bounds": {"end": 70, "reclaim": 25, "duty": 25},
}
Carry = Callable[[], "Told | None"]
Heard = Callable[[str, Told], None]


@dataclass
class Work:
    """A claim in a node's hand."""

    job: int
    token: str
    attempt: int
    trusted: float
    ends_at: float
    over: bool = False


@dataclass(eq=False)
class Node:
    name: str
    alive: bool = True
    frozen: bool = False
    work: dict[int, Work] = field(default_factory=dict[int, Work])
    term: str = ""
    waiting: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    @property
    def who(self) -> str:
        return f"node:{self.name}"


class Line:
    """`brief`: a shorter one, in which nothing is said of what comes in time."""

    def __init__(
        self,
        seed: int,
        jobs: int = 60,
        *,
        commits: bool = False,
        brief: bool = False,
        store: Callable[[History], Store] = Store,
    ) -> None:
        self._rough_seconds = 20.0 if brief else FAULTS_UNTIL_SECONDS
        self._calm_seconds = 20.0 if brief else CALM_SECONDS
        self.history = History(commits=commits, **HEADER)
        self.history.step_seconds = 0.0
        self.store = store(self.history)
        self._rng = random.Random(seed)
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._turn = 0
        self._tokens = 0
        self._faults = True
        self._users_until = max(self._rough_seconds * 0.8, jobs / 10)
        self._left = jobs
        self._nodes: list[Node] = []

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        self._turn += 1
        at = round(self.history.t + seconds, 6)
        heapq.heappush(self._queue, (at, self._turn, act))

    def _ask(self, op: str, who: str, asked: Told, carry: Carry, heard: Heard) -> None:
        """Over the line: it may be lost on either way, or be carried out after all."""
        rng, call = self._rng, self.history.call(op, who, **asked)
        fate = rng.random() if self._faults else 1.0
        there, back = rng.uniform(0.001, 0.05), rng.uniform(0.001, 0.05)
        if fate < 0.03:
            there = rng.uniform(1, 12)  # late, and nobody waits for it
        known: list[Told | None] = []

        def arrive() -> None:
            known.append(carry())
            if known[0] is not None:
                self.history.commit(call, **known[0])

        def answer() -> None:
            if fate < 0.08 or not known:
                self.history.reply(call, "unknown")
                heard("unknown", {})
            elif known[0] is None:
                status = "stale" if "token" in asked or "term" in asked else "refused"
                self.history.reply(call, "stale" if op == "fire" else status)
                heard("stale", {})
            else:
                self.history.note("reply", id=call, status="ok", **known[0])
                heard("ok", known[0])

        if not 0.03 <= fate < 0.05:
            self._after(there, arrive)
        self._after(min(there, 0.5) + back, answer)
