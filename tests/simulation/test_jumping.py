"""The clock that jumps and the pauses on it do what Trio's own do: the same tasks go on at the same
moments, in the same order.
"""

from __future__ import annotations

import importlib
import random
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.simulation.scheduling import Between, one_order

RUNS: Any = importlib.import_module("trio._core._run")
TASKS = 6
DELAYS = (0.0, 0.1, 0.2, 0.2, 0.3, 0.7, 1e-9)  # few, so that many end at one moment
Trace = list[tuple[float, int, str]]


class Program:
    """Tasks that wait, with and without limits, and cancel each other: drawn from `seed`."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.scripts = [self._script() for _ in range(TASKS)]
        self.scopes: dict[int, trio.CancelScope] = {}
        self.trace: Trace = []

    def _script(self) -> list[tuple[str, float, float, int]]:
        rng = self.rng
        return [
            (
                rng.choice(("sleep", "sleep", "until", "limited", "shielded", "cancel")),
                rng.choice(DELAYS),
                rng.choice(DELAYS),
                rng.randrange(TASKS),
            )
            for _ in range(12)
        ]

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            for number in range(TASKS):
                nursery.start_soon(self._task, number)

    async def _task(self, number: int) -> None:
        for what, seconds, limit, other in self.scripts[number]:
            with trio.CancelScope() as self.scopes[number]:
                await self._step(what, seconds, limit, other)
                self._note(number, what)
            if self.scopes[number].cancelled_caught:
                self._note(number, "cancelled")

    async def _step(self, what: str, seconds: float, limit: float, other: int) -> None:
        match what:
            case "sleep":
                await trio.sleep(seconds)
            case "until":
                await trio.sleep_until(trio.current_time() + seconds - limit)
            case "limited":
                with trio.move_on_after(limit):
                    await trio.sleep(seconds)
            case "shielded":
                with trio.move_on_after(limit, shield=True):
                    await trio.sleep(seconds)
            case _:
                await trio.sleep(seconds)
                if other in self.scopes:
                    self.scopes[other].cancel()

    def _note(self, number: int, what: str) -> None:
        self.trace.append((trio.current_time(), number, what))


def by_trio(seed: int, monkeypatch: pytest.MonkeyPatch) -> Trace:
    program = Program(seed)
    with monkeypatch.context() as patches:
        patches.setattr(RUNS, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
        patches.setattr(RUNS, "_r", random.Random(seed))
        trio.run(program.run, clock=MockClock(autojump_threshold=0))
    return program.trace


def by_the_simulation(seed: int) -> Trace:
    program, between = Program(seed), Between()
    with one_order(seed, between):
        trio.run(program.run, clock=between.clock)
    return program.trace


def test_all_goes_on_as_by_trio(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [by_the_simulation(seed) for seed in range(200)]
    assert whole == [by_trio(seed, monkeypatch) for seed in range(200)]
    assert any(what == "cancelled" for trace in whole for _, _, what in trace)


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_what_is_no_time_is_refused(seconds: float) -> None:
    between = Between()
    with one_order(1, between), pytest.raises(ValueError, match="must"):
        trio.run(trio.sleep, seconds, clock=between.clock)


def test_all_is_as_before_afterwards() -> None:
    before = trio.sleep, trio.sleep_until, RUNS.Runner.reschedule, RUNS.TheIOManager.get_events
    by_the_simulation(1)
    after = trio.sleep, trio.sleep_until, RUNS.Runner.reschedule, RUNS.TheIOManager.get_events
    assert after == before
