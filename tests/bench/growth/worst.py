"""What jobs cost where a queue is as bad as it gets: in fragments, with much in hand, with nothing
cleaned up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from random import Random

from musterd.store.leases import Caps
from tests.bench import retention
from tests.bench.growth.figures import Figures, Row, Size, in_turns
from tests.bench.growth.queues import (
    ALONE,
    BUSY,
    COUNTED,
    EVERY_SECOND_CANCELED,
    IN_HAND,
    KINDS_IN_TURN,
    PARKED,
    READY,
    TARGETED,
    queue,
)
from tests.bench.growth.visits import BATCH, WARM, Visitor, Work, visiting
from tests.support.postgres_server import PostgresServer

Case = Callable[[PostgresServer, Callable[[int], int], int], Iterator[Row]]
Stock = tuple[str, int, Sequence[object]]  # the statement, how many, what else it is given
JOBS = 20_000  # of a size and round
PIECES = 10  # a batch comes back in so many
CAP = 4
STEADY_A_SECOND = 1_000
NO_AUTOVACUUM = """
do $$ declare one text; begin
    for one in select format('%I.%I', schemaname, tablename) from pg_tables
        where schemaname = 'musterd' loop
        execute 'alter table ' || one || ' set (autovacuum_enabled = off)';
    end loop;
end $$
"""


def _scenes(
    case: str, server: PostgresServer, rounds: int, jobs: int, scenes: Sequence[_Scene]
) -> Iterator[Row]:
    """The same visits to each of them, in turns."""
    visits = jobs // BATCH
    with ExitStack() as stack:
        sizes: list[Size] = []
        for number, (label, size, stocks, caps, work) in enumerate(scenes):
            one = stack.enter_context(queue(server, f"{case}_{number}"))
            for statement, rows, params in stocks:
                one.stock(statement, rows, params)
            one.say(COUNTED)
            one.settle_down()
            sizes.append(Size(label, size, visiting(one, visits, caps, work)))
        yield from in_turns(case, sizes, rounds)


_Scene = tuple[str, int, Sequence[Stock], Caps, Work | None]


def _enough(jobs: int, rounds: int) -> int:
    return (jobs + WARM * BATCH) * rounds + BATCH


def fragments(server: PostgresServer, scaled: Callable[[int], int], rounds: int) -> Iterator[Row]:
    jobs = scaled(JOBS)
    enough = _enough(jobs, rounds)
    scenes: list[_Scene] = [
        ("neighbours alike", 64, [(READY, enough, ["note"])], (), None),
        ("one by one", 1, [(ALONE, enough, [])], (), None),
        ("every second one canceled", 2, [(EVERY_SECOND_CANCELED, enough, [])], (), None),
        ("two kinds in turn", 2, [(KINDS_IN_TURN, enough, [])], (), None),
    ]
    yield from _scenes("fragments", server, rounds, jobs, scenes)


def in_hand(server: PostgresServer, scaled: Callable[[int], int], rounds: int) -> Iterator[Row]:
    jobs, held = scaled(JOBS), scaled(100_000)
    ours: Stock = (READY, _enough(jobs, rounds), ["note"])
    limited: Caps = (("note", BATCH),)
    scenes: list[_Scene] = [
        ("nothing in hand", 0, [ours], (), None),
        (f"{held:,} in hand", held, [ours, (IN_HAND, held, [])], (), None),
        ("nothing in hand, under a limit", 0, [ours], limited, None),
        (f"{held:,} in hand, under a limit", held, [ours, (IN_HAND, held, [])], limited, None),
    ]
    yield from _scenes("in_hand", server, rounds, jobs, scenes)


def mixed(server: PostgresServer, scaled: Callable[[int], int], rounds: int) -> Iterator[Row]:
    jobs = scaled(JOBS)
    stock: Stock = (READY, _enough(jobs, rounds) * 2, ["note"])
    scenes: list[_Scene] = [
        ("short ones alone, in order", 0, [stock], (), _in_pieces(shuffle=False, long_ones=0)),
        ("short ones alone, at random", 0, [stock], (), _in_pieces(shuffle=True, long_ones=0)),
        ("ten of a hundred go on", PIECES, [stock], (), _in_pieces(shuffle=True, long_ones=PIECES)),
    ]
    yield from _scenes("mixed", server, rounds, jobs, scenes)


def _in_pieces(*, shuffle: bool, long_ones: int) -> Work:
    random = Random(1)

    async def work(ours: Visitor, visits: int) -> Sequence[float]:
        took: list[float] = []
        for _ in range(visits):
            claims, seconds = await ours.claim()
            took.append(seconds)
            going = list(claims)
            if shuffle:
                random.shuffle(going)
            for first in range(long_ones, BATCH, BATCH // PIECES):
                await ours.settle(going[first : first + BATCH // PIECES])
        return took

    return work


def targets(server: PostgresServer, scaled: Callable[[int], int], rounds: int) -> Iterator[Row]:
    jobs = scaled(JOBS)
    ours: Stock = (READY, _enough(jobs, rounds), ["note"])
    behind = scaled(100_000)
    scenes: list[_Scene] = [
        ("no targets", 0, [ours], (), None),
        ("beside 1,000 busy targets", 1_000, [ours, (BUSY, behind, [])], (), None),
        ("each of a target of its own", 1, [(TARGETED, _enough(jobs, rounds), [])], (), None),
    ]
    yield from _scenes("targets", server, rounds, jobs, scenes)


def capped(server: PostgresServer, scaled: Callable[[int], int], rounds: int) -> Iterator[Row]:
    jobs, waiting = scaled(JOBS), scaled(100_000)
    ours: Stock = (READY, _enough(jobs, rounds), ["note"])
    full: Sequence[Stock] = [(IN_HAND.replace("'long'", "'narrow'"), CAP, []), ours]
    limit: Caps = (("narrow", CAP),)
    scenes: list[_Scene] = [
        ("no kind has a limit", 0, [ours], (), None),
        ("a kind at its limit", 0, full, limit, None),
        (f"{waiting:,} of it wait", waiting, [*full, (PARKED, waiting, [])], limit, None),
    ]
    yield from _scenes("capped", server, rounds, jobs, scenes)


def unvacuumed(server: PostgresServer, scaled: Callable[[int], int], _: int) -> Iterator[Row]:
    """Ten minutes of 1,000 jobs a second, as fast as they go, each of a due time of its own."""
    steps, visits = 3, JOBS // BATCH
    jobs = scaled(600_000)
    with queue(server, "unvacuumed") as one:
        one.conn.execute(NO_AUTOVACUUM)
        one.stock(ALONE, jobs + (steps + 1) * (visits + 2 * WARM) * BATCH)
        one.say(COUNTED)
        one.settle_down()
        done = count(0, jobs // steps)
        for _ in range(steps + 1):
            number = next(done)
            if number:
                visiting(one, jobs // steps // BATCH)()
            found = visiting(one, visits)()
            yield _row("unvacuumed", f"{number:,} jobs done since", number, found)


def steady(server: PostgresServer, scaled: Callable[[int], int], _: int) -> Iterator[Row]:
    """1,000 jobs a second, each deleted after 36 s: how large tables and indexes are, by time."""
    seconds = scaled(300_000) / STEADY_A_SECOND
    began = time.process_time()
    found = retention.sizes(server, seconds, STEADY_A_SECOND)
    ours = (time.process_time() - began) / (seconds * STEADY_A_SECOND) * 1e6
    for one in found[len(found) // 2 :: max(1, len(found) // 8)]:
        size = (one.table + one.indexes) / 1_048_576
        label = f"after {one.at_seconds:.0f} s, {one.jobs:,} jobs"
        yield Row("steady", label, one.jobs, [STEADY_A_SECOND], ours, 0.0, mebibytes=size)


def _row(case: str, label: str, size: int, found: Figures) -> Row:
    return Row(
        case, label, size, [found.jobs_a_second], found.daemon_microseconds,
        found.server_microseconds, claim_milliseconds=found.claim_milliseconds,
    )  # fmt: skip


CASES: dict[str, Case] = {
    "fragments": fragments,
    "in_hand": in_hand,
    "mixed": mixed,
    "unvacuumed": unvacuumed,
    "targets": targets,
    "capped": capped,
    "steady": steady,
}
