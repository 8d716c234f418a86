"""The cases: what grows, in which steps, and how far the cost may follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import attrs

from tests.bench.growth import embedded, halted, held, singles, worst
from tests.bench.growth.draining import NAP_SECONDS, Work, drained, drained_by_bursts
from tests.bench.growth.figures import Figures, Row, Size, in_turns
from tests.bench.growth.queues import (
    BEHIND,
    COUNTED,
    ENDED,
    FUTURE,
    READY,
    Queue,
    queue,
    topped_up,
)
from tests.support.postgres_server import PostgresServer

JOBS = 40_000
WARM = 4_000
BURST = 1_000
WARM_OF_A_TENANT = 150  # each has to learn how brisk its jobs are
CREW_OF_TENANTS = 128  # of all tenants together


@attrs.frozen
class Bench:
    """What all cases are given."""

    server: PostgresServer
    scale: float
    rounds: int
    deepest: int = 1_000_000

    def count(self, number: int) -> int:
        return max(BURST, round(number * self.scale))

    def work(self, url: str, jobs: int = JOBS) -> Work:
        return Work(url, self.count(jobs), self.count(WARM))


def depth(bench: Bench) -> Iterator[Row]:
    with ExitStack() as stack:
        sizes: list[Size] = []
        for jobs in sorted(
            {bench.count(100_000), bench.count(1_000_000), bench.count(bench.deepest)}
        ):
            deep = stack.enter_context(queue(bench.server, f"deep_{jobs}"))
            sizes.append(Size(f"{jobs:,} queued", jobs, _drain(bench, deep, jobs)))
        shallow = stack.enter_context(queue(bench.server, "shallow"))
        label = f"{BURST:,}, again and again"
        sizes.append(Size(label, BURST, lambda: _by_bursts(bench, shallow)))
        yield from in_turns("depth", sizes, bench.rounds)


def _by_bursts(bench: Bench, shallow: Queue) -> Figures:
    def fill(jobs: int) -> None:
        shallow.stock(READY, jobs, ["note"])
        shallow.ring()

    shallow.settle_down()
    return drained_by_bursts(bench.work(shallow.url), shallow.gate(), fill, BURST)


def _drain(bench: Bench, queue: Queue, jobs: int) -> Callable[[], Figures]:
    top_up = topped_up(queue, jobs)

    def measure() -> Figures:
        top_up()
        return drained(bench.work(queue.url), queue.gate())

    return measure


def beside(bench: Bench) -> Iterator[Row]:
    """Jobs that are ready, beside as many others as may be."""
    others = bench.count(1_000_000)
    scenes = {
        "nothing else": (0, ""),
        f"{others:,} more urgent, due tomorrow": (others, FUTURE),
        f"{others:,} behind 1,000 halted targets": (others, BEHIND),
        f"{others:,} that have ended": (others, ENDED),
    }
    with ExitStack() as stack:
        sizes: list[Size] = []
        for number, (label, (jobs, statement)) in enumerate(scenes.items()):
            scene = stack.enter_context(queue(bench.server, f"beside_{number}"))
            scene.stock(statement, jobs)
            scene.say(COUNTED)
            sizes.append(Size(label, jobs, _drain(bench, scene, bench.count(100_000))))
        yield from in_turns("beside", sizes, bench.rounds)


def daemons(bench: Bench) -> Iterator[Row]:
    with queue(bench.server, "many_daemons") as shared:
        top_up = topped_up(shared, bench.count(120_000))

        def measure(number: int) -> Figures:
            top_up()
            work = attrs.evolve(bench.work(shared.url, 60_000), daemons=number)
            return drained(work, shared.gate(number))

        sizes = [
            Size(_several(number, "daemon"), number, partial(measure, number))
            for number in (1, 2, 4, 8)
        ]
        yield from in_turns("daemons", sizes, bench.rounds)


def tenants(bench: Bench) -> Iterator[Row]:
    with ExitStack() as stack:
        sizes: list[Size] = []
        for number in (1, 8, 64):
            crew = CREW_OF_TENANTS // number
            sets = [f"workers.max_count={CREW_OF_TENANTS + 1}", "workers.default_count=1"]
            names = [f"t{each}" for each in range(number)]
            sets += [f"tenants.{name}.workers.default_count={crew}" for name in names]
            sets += [f"tenants.{name}.workers.max_count={crew}" for name in names]
            shared = stack.enter_context(queue(bench.server, f"tenants_{number}", names, sets))
            sizes.append(Size(_several(number, "tenant"), number, _tenants(bench, shared, sets)))
        yield from in_turns("tenants", sizes, bench.rounds)


def _tenants(bench: Bench, shared: Queue, sets: Sequence[str]) -> Callable[[], Figures]:
    number = len(shared.schemas)
    warm = max(bench.count(WARM), WARM_OF_A_TENANT * number)
    work = attrs.evolve(bench.work(shared.url), warm=warm, sets=sets)
    each = -(-(bench.count(2 * JOBS) + warm) // number)

    def measure() -> Figures:
        shared.stock(READY, each, ["note"])
        shared.say(COUNTED)
        shared.settle_down()
        return drained(work, shared.gate())

    return measure


def workers(bench: Bench) -> Iterator[Row]:
    """Jobs that only wait: so many workers do so many at once."""
    with queue(bench.server, "many_workers") as shared:
        shared.stock(READY, bench.count(250_000), ["nap"])
        shared.say(COUNTED)
        shared.settle_down()

        def measure(number: int) -> Figures:
            seconds = max(1.0, 5 * bench.scale)
            jobs, warm = round(number * seconds / NAP_SECONDS), number * 5
            work = Work(shared.url, jobs, warm, workers=number)
            return drained(work, shared.gate())

        sizes = [
            Size(
                f"{number:,} workers",
                number,
                partial(measure, number),
                ideal=number / NAP_SECONDS,
            )
            for number in (8, 100, 1_000)
        ]
        yield from in_turns("workers", sizes, bench.rounds)


def sqlite(bench: Bench) -> Iterator[Row]:
    with ExitStack() as stack:
        sizes: list[Size] = []
        for jobs in map(bench.count, (100_000, 1_000_000)):
            file = stack.enter_context(embedded.file(f"depth_{jobs}"))
            sizes.append(Size(f"{jobs:,} queued", jobs, _embedded(bench, file, jobs)))
        yield from in_turns("sqlite", sizes, bench.rounds)


def _embedded(bench: Bench, file: embedded.File, jobs: int) -> Callable[[], Figures]:
    def measure() -> Figures:
        file.top_up(jobs)
        return drained(bench.work(file.url), file.gate())

    return measure


def snapshot(bench: Bench) -> Iterator[Row]:
    return held.rows(bench.server, bench.count(200_000))


def behind(bench: Bench) -> Iterator[Row]:
    return halted.on_postgres(bench.server, bench.count(100_000))


def sqlite_behind(bench: Bench) -> Iterator[Row]:
    return halted.on_sqlite(bench.count(100_000))


def _of_worst(case: worst.Case, bench: Bench) -> Iterator[Row]:
    return case(bench.server, bench.count, bench.rounds)


def _several(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


CASES: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "depth": depth,
    "beside": beside,
    "snapshot": snapshot,
    **{name: partial(_of_worst, case) for name, case in worst.CASES.items()},
    "singles": lambda bench: singles.rows(bench.server, bench.rounds, bench.scale),
    "daemons": daemons,
    "tenants": tenants,
    "workers": workers,
    "sqlite": sqlite,
    "halted": behind,
    "sqlite-halted": sqlite_behind,
}
