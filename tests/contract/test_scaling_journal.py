"""The journal of decisions as stores keep it: runs grow, are read by time, and go when old."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import trio

from musterd.store.scaling_journal import FIELDS, JournalRun
from tests.contract.rigs import Rig, closing_engine

NORTH, SOUTH = UUID(int=1), UUID(int=2)
SAID: dict[str, Any] = {
    **dict.fromkeys(FIELDS),
    "policy": "latency", "busy": 3, "size_before": 4, "desired": 5, "hired": 1, "taken_back": 0,
    "retired": 0,
}  # fmt: skip
WHOLE: dict[str, Any] = {
    **SAID,
    "due": 9, "others_free": 1, "share": 7, "room": 12, "raw_wish": 10, "because": "drain",
    "decided_by": {"kind": 'über "x"', "job": 2**40}, "slack_seconds": -0.125, "limited_by": "max",
    "default_count": 2, "max_count": 5, "candidate": {"desired": 3, "limited_by": None},
}  # fmt: skip


async def start(rig: Rig) -> datetime:
    return datetime.fromtimestamp(await rig.engine.health.now(), UTC).replace(microsecond=123_457)


def run(at: datetime, seconds: float = 0, ticks: int = 1, **more: Any) -> JournalRun:
    about: dict[str, Any] = {"node_id": NORTH, "node": "north", "fields": SAID, **more}
    return JournalRun(at=at, until=at + timedelta(seconds=seconds), ticks=ticks, **about)


async def test_a_run_comes_back_as_it_was_written(rig: Rig) -> None:
    now = await start(rig)
    written = [run(now, 4, 5, fields=WHOLE), run(now + timedelta(seconds=5))]
    await rig.engine.journal.write(written)
    assert await rig.engine.journal.read(None, None, 10) == written


async def test_a_run_grows_and_never_shrinks(rig: Rig) -> None:
    now, journal = await start(rig), rig.engine.journal
    await journal.write([run(now, 1, 2)])
    longer = run(now, 9, 10)
    for _ in range(2):  # a reply may be lost
        await journal.write([longer, run(now + timedelta(seconds=10))])
    await journal.write([run(now, 1, 2)])
    assert await journal.read(None, None, 10) == [longer, run(now + timedelta(seconds=10))]


async def test_all_nodes_read_the_same(shared: Rig) -> None:
    now = await start(shared)
    both = [run(now), run(now + timedelta(seconds=0.5), node_id=SOUTH, node="south")]
    await shared.engine.journal.write(both[:1])
    async with closing_engine(shared.another()) as other:
        await other.open()
        await other.journal.write(both[1:])
        assert await other.journal.read(None, None, 10) == both
    assert await shared.engine.journal.read(None, None, 10) == both


async def test_two_nodes_may_decide_at_one_moment(rig: Rig) -> None:
    now = await start(rig)
    await rig.engine.journal.write([run(now)])
    await rig.engine.journal.write([run(now, node_id=SOUTH, node="south")])
    assert {one.node for one in await rig.engine.journal.read(now, now, 10)} == {"north", "south"}


async def test_what_touches_a_stretch_of_time_is_read(rig: Rig) -> None:
    now, journal = await start(rig), rig.engine.journal
    runs = [run(now + timedelta(seconds=at), 5, 6) for at in (0, 10, 20, 30)]
    await journal.write(runs)

    async def read(since: float | None, until: float | None, limit: int = 10) -> list[int]:
        times = [None if one is None else now + timedelta(seconds=one) for one in (since, until)]
        found = await journal.read(times[0], times[1], limit)
        return [runs.index(one) for one in found]

    assert await read(None, None) == [0, 1, 2, 3]
    assert await read(5, 10) == [0, 1]
    assert await read(5.1, 9.9) == []
    assert await read(12, 13) == [1]
    assert await read(None, 25) == [0, 1, 2]
    assert await read(16, None) == [2, 3]
    assert await read(None, None, 2) == [2, 3]
    assert await read(None, 25, 1) == [2]


async def test_a_run_of_an_hour_is_found_at_its_end(rig: Rig) -> None:
    now = await start(rig)
    long = run(now, 3_600, 3_601)
    await rig.engine.journal.write([long])
    end = now + timedelta(hours=1)
    assert await rig.engine.journal.read(end, end, 1) == [long]


async def test_a_reader_may_begin_with_the_first_year(rig: Rig) -> None:
    one = run(await start(rig))
    await rig.engine.journal.write([one])
    first, last = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    assert await rig.engine.journal.read(first, last, 10) == [one]


async def test_old_runs_are_forgotten_in_batches(rig: Rig) -> None:
    now, journal = await start(rig), rig.engine.journal
    old = [run(now - timedelta(seconds=100 + at)) for at in range(7)]
    going_on = run(now - timedelta(seconds=200), 200, 201)
    await journal.write([going_on, *old, run(now)])
    assert [await journal.forget(50, 3) for _ in range(4)] == [3, 3, 1, 0]
    assert await journal.read(None, None, 10) == [going_on, run(now)]
    rig.pass_time(60)
    assert await journal.forget(50, 3) == 2


async def test_two_nodes_may_forget_at_once(shared: Rig) -> None:
    now = await start(shared)
    await shared.engine.journal.write([run(now - timedelta(seconds=100 + at)) for at in range(200)])
    done: list[int] = []

    async def forget(journal: Any) -> None:
        while found := await journal.forget(50, 30):
            done.append(found)

    async with closing_engine(shared.another()) as other, trio.open_nursery() as nursery:
        await other.open()
        nursery.start_soon(forget, shared.engine.journal)
        nursery.start_soon(forget, other.journal)
    left = await shared.engine.journal.read(None, None, 300)
    assert sum(done) + len(left) == 200
    while await shared.engine.journal.forget(50, 30):
        pass
    assert await shared.engine.journal.read(None, None, 300) == []


async def test_what_is_read_is_bounded(rig: Rig) -> None:
    now = await start(rig)
    many = [run(now + timedelta(seconds=at)) for at in range(300)]
    await rig.engine.journal.write(many)
    assert await rig.engine.journal.read(None, None, 10**9) == many
