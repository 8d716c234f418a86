"""The journal that lasts: what a node decided is in its store, whatever became of the node."""

from collections.abc import Sequence
from typing import Any

import attrs
import trio

from musterd.manager.node.status import Decision
from musterd.manager.scaling.journal import TOLERANCE_SECONDS, Period, unpacked
from musterd.manager.scaling.journal_writer import WAITING_MAX, WRITE_SECONDS
from musterd.store.scaling_journal import JournalRun
from tests.support.faulty_engine import Fault
from tests.support.stage import Stage, until

BUSY: dict[str, Any] = {"workers__max_count": 6, "scaling__stabilization_seconds": 2}


async def kept(stage: Stage) -> list[JournalRun]:
    return await stage.store.engine.journal.read(None, None, 10_000)


def assert_same(found: Sequence[Decision], real: Sequence[Decision]) -> None:
    assert [attrs.evolve(one, at=0) for one in found] == [attrs.evolve(one, at=0) for one in real]
    for one, other in zip(found, real, strict=True):
        assert abs(one.at - other.at) <= TOLERANCE_SECONDS + 1e-5


async def test_a_node_leaves_all_its_decisions(stage: Stage) -> None:
    node = await stage.start(**BUSY)
    await stage.put("slow", 20)
    await stage.all_ended()
    await trio.sleep(20)
    real = node.journal
    assert len(real) > 20
    await node.stop()
    rows = await kept(stage)
    assert_same([one for row in rows for one in unpacked(row)], real)
    assert {row.node for row in rows} == {"north"}
    assert any(row.fields["hired"] for row in rows)
    assert {row.fields["max_count"] for row in rows} == {6}


async def test_the_next_node_adds_to_it(stage: Stage) -> None:
    first = await stage.start()
    await trio.sleep(10)
    await first.stop()
    before = await kept(stage)
    second = await stage.start()
    await trio.sleep(10)
    await second.stop()
    rows = await kept(stage)
    assert rows[: len(before)] == before
    assert len({row.node_id for row in rows}) == 2


async def test_like_ticks_cost_a_write_now_and_then_and_one_row(stage: Stage) -> None:
    await stage.start(workers__default_count=1, workers__max_count=1)
    await stage.put("long", 2)
    await trio.sleep(10)
    rows, writes = len(await kept(stage)), stage.store.calls["journal_write"]
    observed = stage.store.calls["observe"]
    await trio.sleep(60)
    assert stage.store.calls["observe"] - observed >= 59
    assert 10 <= stage.store.calls["journal_write"] - writes <= 60 / WRITE_SECONDS + 1
    assert len(await kept(stage)) == rows
    assert (await kept(stage))[-1].ticks > 60


async def test_a_node_that_dies_loses_a_few_seconds(stage: Stage) -> None:
    node = await stage.start(workers__max_count=2)
    await stage.put("long", 4)
    await trio.sleep(30)
    real = node.journal
    node.kill()
    await node.ended.wait()
    found = [one for row in await kept(stage) for one in unpacked(row)]
    assert_same(found, real[: len(found)])
    assert len(real) - len(found) <= WRITE_SECONDS + 1


async def test_what_is_decided_while_the_store_is_away_is_written_later(stage: Stage) -> None:
    node = await stage.start(workers__max_count=2)
    await stage.put("long", 4)
    await trio.sleep(10)
    stage.store.away = True
    await trio.sleep(60)
    stage.store.away = False
    await trio.sleep(60)
    real = node.journal
    await node.stop()
    found = [one for row in await kept(stage) for one in unpacked(row)]
    assert_same(found[: len(real)], real)
    assert sum(one.limited_by == "no_observation" for one in found) > 40


async def test_a_lost_reply_writes_nothing_twice(stage: Stage) -> None:
    node = await stage.start(**BUSY)
    await stage.put("slow", 20)
    stage.store.faults["journal_write"] += [Fault("reply_lost"), Fault("request_lost")] * 3
    await stage.all_ended()
    await until(lambda: not stage.store.faults["journal_write"], within_seconds=200)
    real = node.journal
    await node.stop()
    found = [one for row in await kept(stage) for one in unpacked(row)]
    assert_same(found[: len(real)], real)


async def test_memory_is_bounded_and_what_is_lost_is_counted(stage: Stage) -> None:
    node = await stage.start()
    stage.store.broken.add("journal_write")
    writer = node.tenancy().journal
    await trio.sleep(2)
    (*_, last) = node.journal
    for due in range(WAITING_MAX + 500):
        writer.note(attrs.evolve(last, at=last.at + 1 + due, due=due))
    assert len(writer.waiting) == WAITING_MAX
    stage.store.broken.clear()
    phrase = "decisions missing in the scaling journal"
    await until(lambda: node.events.named(phrase), within_seconds=60)
    (said,) = node.events.named(phrase)
    assert 500 <= int(said["count"]) <= 510
    await trio.sleep(60)
    assert len(writer.waiting) <= 1
    assert node.daemon.status().phase == "running"


async def test_old_decisions_are_deleted_and_none_are_kept_where_none_are_wanted(
    stage: Stage,
) -> None:
    node = await stage.start(scaling__journal_days=0.001, retention__interval_seconds=5)
    await stage.put("slow", 20)
    await stage.all_ended()
    await trio.sleep(2 * WRITE_SECONDS)
    oldest = (await kept(stage))[0]
    await trio.sleep(300)
    assert oldest not in await kept(stage)
    await node.stop()
    off = await stage.start(scaling__journal_days=0, retention__interval_seconds=5)
    written = stage.store.calls["journal_write"]
    await trio.sleep(100)
    await off.stop()
    assert stage.store.calls["journal_write"] == written
    assert await kept(stage) == []


async def test_the_node_knows_what_it_has_not_written(stage: Stage) -> None:
    node = await stage.start(**BUSY)
    await stage.put("slow", 20)
    await trio.sleep(WRITE_SECONDS - 1)
    page = await node.tenancy().read_journal(Period(None, None, 100))
    assert_same([one for row in page.runs for one in unpacked(row)], node.journal)
    await trio.sleep(WRITE_SECONDS)
    page = await node.tenancy().read_journal(Period(None, None, 100))
    assert_same([one for row in page.runs for one in unpacked(row)], node.journal)
    assert page.is_whole


async def test_two_nodes_read_the_same(stage: Stage) -> None:
    nodes = [await stage.start(name, **BUSY) for name in ("north", "south")]
    await stage.put("slow", 20)
    await stage.all_ended()
    await stage.nodes[0].stop()
    await trio.sleep(60)
    end = await nodes[1].tenancy().read_journal(Period(None, None, 1_000))
    assert {row.node for row in end.runs} == {"north", "south"}
    assert list(end.runs)[:-1] == (await kept(stage))[:-1]


async def test_without_the_store_a_node_tells_what_it_remembers(stage: Stage) -> None:
    settings: Sequence[dict[str, Any]] = ({}, {"scaling__journal_days": 0})
    for changes in settings:
        node = await stage.start(**changes)
        await trio.sleep(10)
        stage.store.away = not changes
        page = await node.tenancy().read_journal(Period(None, None, 100))
        stage.store.away = False
        assert not page.is_whole
        assert_same([one for row in page.runs for one in unpacked(row)], node.journal)
        await node.stop()
