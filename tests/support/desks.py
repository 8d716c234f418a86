"""Desks without a node around them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast
from uuid import UUID

import trio

from musterd.store.jobs import NewJob
from musterd.store.leases import Claim, Reaped, Settlement, Successes
from musterd.store.sqlite.engine import SqliteEngine
from musterd.workers.claiming.desk import ClockAndRng, Desk
from musterd.workers.claiming.held import Ignored
from musterd.workers.claiming.observer import JobObserver
from musterd.workers.idleness import Idleness
from tests.contract.job_tools import take_one
from tests.support.faulty_engine import PartOverlay
from tests.support.stage import live_settings

Overlay = TypeVar("Overlay", bound=PartOverlay)


class Silent:
    """An observer to whom nothing matters."""

    def claimed(self, kind: str, waited_seconds: Sequence[float]) -> None: ...

    def settled(self, settlements: Sequence[Settlement]) -> None: ...

    def succeeded(self, successes: Successes) -> None: ...

    def stale_writes(self, count: int) -> None: ...

    def lease_lost(self, job_id: int, kind: str, attempt: int) -> None: ...

    def request_ignored(self, ignored: Ignored) -> None: ...

    def claim_refused(self, why: str) -> None: ...

    def held_up(self, job_id: int, kind: str, attempt: int) -> None: ...

    def reaped(self, reaped: Sequence[Reaped]) -> None: ...


class Heard(Silent):
    """An observer that remembers."""

    def __init__(self) -> None:
        self.lost: list[int] = []
        self.held_up_ids: list[int] = []  # whose ends could not be written at once
        self.stale = 0
        self.ended: list[Settlement] = []

    def settled(self, settlements: Sequence[Settlement]) -> None:
        self.ended += settlements

    def held_up(self, job_id: int, kind: str, attempt: int) -> None:
        self.held_up_ids.append(job_id)

    def succeeded(self, successes: Successes) -> None:
        self.ended += successes.settlements()

    def stale_writes(self, count: int) -> None:
        self.stale += count

    def lease_lost(self, job_id: int, kind: str, attempt: int) -> None:
        self.lost.append(job_id)


def make_desk(
    observer: JobObserver | None = None,
    idleness: Idleness | None = None,
    boottime: Callable[[], float] = trio.current_time,
    **changes: object,
) -> Desk:
    settings, idle = live_settings(**changes), idleness or Idleness()
    sources = ClockAndRng(boottime, random.Random(1))
    return Desk("north", settings, tuple, idle, observer or Silent(), sources)


def claim(job_id: int, attempt: int = 1) -> Claim:
    return Claim(job_id, "k", "{}", attempt, None, 0, 0.0, None, UUID(int=attempt))


def be_brisk(desk: Desk) -> None:
    """As after a thousand jobs that took no time at all."""
    for _ in range(1_000):
        desk._pacing.note_service(0.0)  # pyright: ignore[reportPrivateUsage] - what it measured


async def claimed_under(weather: type[Overlay]) -> tuple[SqliteEngine, Overlay, Claim]:
    """A store in memory whose leases are under that weather, and the claim of its only job."""
    engine = SqliteEngine(":memory:", lambda: 1000.0, busy_timeout_seconds=1)
    leases = weather(engine.leases)
    engine.leases = cast(Any, leases)
    await engine.open()
    await engine.migrate()
    await engine.jobs.enqueue([NewJob("a")])
    return engine, leases, await take_one(engine)
