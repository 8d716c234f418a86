"""Runs one seed: the scenario, then its history before the checker."""

from __future__ import annotations

import gc
import hashlib
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial

import attrs
import trio

from tests.checker.verdict import Judgement, judge
from tests.simulation import closing, deeds
from tests.simulation.plan import Scenario
from tests.simulation.scheduling import Between, one_order
from tests.simulation.sometimes import edges_of
from tests.simulation.store import template
from tests.simulation.world import Finding, World

EVIDENCE = (
    *("clients", "claims", "duties", "schedules", "retention", "handlers", "events", "edges"),
    *("faults", "processes", "crews", "deliveries", "outbox"),
    *("jobs", "messages", "duty_rows", "schedule_rows", "counts"),
)
CPU_SECONDS_MAX = 60.0
GARBAGE_MAX = 20_000  # objects; Python's own: 700
AGAIN_SECONDS = 5.0  # and again, where it was caught


class Stuck(BaseException):
    """It turns and turns, and its time does not go on."""


@attrs.frozen
class Run:
    """What came of a scenario."""

    scenario: Scenario
    lines: list[str]
    judgement: Judgement
    findings: tuple[Finding, ...]
    counts: Counter[str]
    edges: Counter[str]
    virtual_seconds: float
    cpu_seconds: float

    @property
    def hash(self) -> str:
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:16]

    @property
    def violated(self) -> list[str]:
        return sorted(self.judgement.violated | {one.what for one in self.findings})


def run(scenario: Scenario) -> Run:
    started = time.process_time()
    world = live(scenario, live_through)
    lines = world.recorder.lines()
    judgement = judge(lines)
    return Run(
        scenario,
        lines,
        judgement,
        tuple(world.findings),
        world.counts,
        edges_of(world.recorder.body),
        world.recorder.t,
        time.process_time() - started,
    )


def warm_up() -> None:
    """What all runs of a process share is made, and left alone by the collector of garbage, which
    comes more seldom: what a run leaves behind is little.
    """
    template()
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_MAX)


def live(scenario: Scenario, story: Callable[[World], Awaitable[None]]) -> World:
    """A world in which `story` takes place. Gives it when all is over."""
    template()
    between, worlds = Between(), list[World]()
    with one_order(scenario.seed, between), _handlers_kept(), _bounded() as stopped:
        try:
            trio.run(_live, scenario, between, worlds, story, clock=between.clock)
        except (Stuck, BaseExceptionGroup, trio.TrioInternalError):
            if not stopped:
                raise
            worlds[0].findings.append(Finding("stuck", "the clock stands, the processor does not"))
    return worlds[0]


async def _live(
    scenario: Scenario,
    between: Between,
    worlds: list[World],
    story: Callable[[World], Awaitable[None]],
) -> None:
    async with trio.open_nursery() as nursery:
        world = World(scenario, nursery, between)
        worlds.append(world)
        between.on_stuck = partial(_note_stuck, world)
        world.recorder.header["records"] = sorted(EVIDENCE)
        await world.store.open()
        try:
            await story(world)
        finally:
            _end_everything(world)
    await world.store.close()


async def live_through(world: World) -> None:
    """What its scenario wants, then the healing, and the end."""
    for name in world.scenario.nodes:
        world.start(name)
    async with trio.open_nursery() as doing:
        for deed in world.scenario.deeds:
            await trio.sleep_until(deed.at)
            doing.start_soon(deeds.do, world, deed.what, deed.values)
        await trio.sleep_until(world.scenario.seconds)
        doing.cancel_scope.cancel()
    await closing.heal(world)
    await _do_business(world)
    await closing.come_to_rest(world)
    await closing.end_all(world)
    await closing.write_final(world)


async def _do_business(world: World) -> None:
    started = trio.current_time()
    async with trio.open_nursery() as doing:
        for deed in world.scenario.business:
            await trio.sleep_until(started + deed.at)
            doing.start_soon(deeds.do, world, deed.what, deed.values)


def _note_stuck(world: World) -> None:
    if not world.is_over:
        world.findings.append(Finding("stuck", "round after round, and the clock stands"))
        _end_everything(world)


def _end_everything(world: World) -> None:
    """The history is written. What was killed may go its way now, and reaches nobody."""
    world.is_over = world.recorder.closed = True
    for process in world.started:
        if process.gate.is_shut:
            process.gate.open()
    world.nursery.cancel_scope.cancel()


@contextmanager
def _handlers_kept() -> Generator[None]:
    """Daemons listen for signals, and put back what they found in whatever order they end."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [(number, signal.getsignal(number)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def _bounded() -> Generator[list[float]]:
    """Gives when it had to stop what ran: it comes up wherever that was, in Trio's own code too."""
    stopped: list[float] = []

    def stop(*_: object) -> None:
        stopped.append(time.process_time())
        raise Stuck

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS_MAX, AGAIN_SECONDS)
    try:
        yield stopped
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
