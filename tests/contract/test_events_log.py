"""The log: pages, filters, bounds, trimming."""

import pytest

from musterd.store.events import PAGE_EVENTS_MAX, READ_AT_ONCE, EventBounds, EventFilter, NewEvent
from musterd.store.jobs import NewJob
from musterd.store.lifecycle import Action
from tests.contract.event_tools import everything, follow, ordered
from tests.contract.job_tools import put, take
from tests.contract.rigs import Rig

HOUR = 3600.0


async def test_an_empty_log(rig: Rig) -> None:
    log = rig.engine.events
    assert await log.order() == 0
    assert await log.bounds() == EventBounds(0, 0)
    page = await log.read(0)
    assert (list(page.events), page.position, page.more) == ([], 0, False)
    assert await log.trim(HOUR, 100) == 0


async def test_what_nodes_tell(rig: Rig) -> None:
    await rig.engine.events.record(
        [
            NewEvent("node.started", {"node": 'n"1', "version": "ü"}),
            NewEvent("worker.hired", {"node": "n", "worker": 3}),
        ]
    )
    await rig.engine.events.record([])
    found = await everything(rig.engine)
    assert [(one.id, one.type, one.job_id, one.kind, one.target) for one in found] == [
        (1, "node.started", None, None, None),
        (2, "worker.hired", None, None, None),
    ]
    assert [one.data for one in found] == [
        {"node": 'n"1', "version": "ü"},
        {"node": "n", "worker": 3},
    ]


async def test_many_jobs_of_one_statement_are_read_in_bounded_pages(rig: Rig) -> None:
    made = await rig.engine.jobs.enqueue([NewJob("a")] * 10_000)
    assert await ordered(rig.engine) == 10_000
    seen: list[int | None] = []
    position, pages = 0, 0
    while True:
        page = await rig.engine.events.read(position)
        assert len(page.events) <= PAGE_EVENTS_MAX + 1000
        seen += [event.job_id for event in page.events]
        position, pages = page.position, pages + 1
        if not page.more:
            break
    assert sorted(one for one in seen if one) == made
    assert pages >= 2


async def test_a_page_has_so_many_rows_at_most(rig: Rig) -> None:
    await rig.engine.events.record([NewEvent("worker.hired", {"worker": 1})] * (READ_AT_ONCE + 5))
    await ordered(rig.engine)
    first = await rig.engine.events.read(0)
    assert (len(first.events), first.position, first.more) == (READ_AT_ONCE, READ_AT_ONCE, True)
    rest = await rig.engine.events.read(first.position)
    assert (len(rest.events), rest.more) == (5, False)
    # Nothing fits, and yet the reader gets on.
    none = await rig.engine.events.read(0, EventFilter(types=frozenset({"job"})))
    assert (list(none.events), none.position, none.more) == ([], READ_AT_ONCE, True)


async def test_a_reader_may_begin_in_the_middle_of_a_row(rig: Rig) -> None:
    await rig.engine.jobs.enqueue([NewJob("a")] * 7)
    await take(rig.engine, workers=7)
    whole = await everything(rig.engine)
    assert len(whole) == 14
    for after in range(15):
        found, position = await follow(rig.engine, after)
        assert found == whole[after:]
        assert position == 14


async def test_a_position_that_is_not_yet_there_waits(rig: Rig) -> None:
    await put(rig.engine, 0)
    await ordered(rig.engine)
    page = await rig.engine.events.read(50)
    assert (list(page.events), page.position, page.more) == ([], 50, False)


async def test_readers_get_what_they_want(rig: Rig) -> None:
    jobs = [NewJob("a", target="t"), NewJob("b"), NewJob("b", target="u", hold=True)]
    first, second, third = await rig.engine.jobs.enqueue(jobs)
    await rig.engine.control.apply(Action.CANCEL, second)
    await rig.engine.control.apply(Action.RELEASE, third)
    await rig.engine.events.record([NewEvent("node.started", {"node": "n"})])

    async def wanted(**which: object) -> list[tuple[str, int | None]]:
        found = await everything(rig.engine, EventFilter(**which))  # type: ignore[arg-type]  # named below
        return sorted((one.type, one.job_id or 0) for one in found)

    assert len(await wanted()) == 6
    assert await wanted(job_id=first) == [("job.enqueued", first)]
    assert await wanted(kind="b", types=frozenset({"job.enqueued"})) == [
        ("job.enqueued", second),
        ("job.enqueued", third),
    ]
    assert await wanted(target="u") == [("job.enqueued", third), ("job.released", third)]
    assert await wanted(types=frozenset({"node", "job.canceled"})) == [
        ("job.canceled", second),
        ("node.started", 0),
    ]
    assert await wanted(types=frozenset({"jo"})) == []
    assert await wanted(job_id=999) == []


async def test_trimming_keeps_what_is_young(rig: Rig) -> None:
    log = rig.engine.events
    for _ in range(3):
        await put(rig.engine, 0, 0)
    await ordered(rig.engine)
    rig.pass_time(HOUR)
    await put(rig.engine, 0)
    newest = await ordered(rig.engine)
    assert newest == 7
    assert await log.trim(HOUR + 60, 100) == 0
    assert await log.trim(HOUR - 60, 2) == 2  # two rows of two events
    assert await log.bounds() == EventBounds(5, 7)
    found, _ = await follow(rig.engine, 0)
    assert [one.id for one in found] == [5, 6, 7]
    assert await log.trim(HOUR - 60, 100) == 1
    assert await log.bounds() == EventBounds(7, 7)


async def test_positions_go_on_once_all_is_forgotten(rig: Rig) -> None:
    log = rig.engine.events
    await put(rig.engine, 0, 0)
    await ordered(rig.engine)
    rig.pass_time(HOUR)
    assert await log.trim(60, 100) == 1
    assert await log.bounds() == EventBounds(3, 2)
    page = await log.read(0)
    assert (list(page.events), page.position, page.more) == ([], 2, False)
    await put(rig.engine, 0)
    assert await ordered(rig.engine) == 3
    assert [one.id for one in (await follow(rig.engine, 1))[0]] == [3]
    assert await log.bounds() == EventBounds(3, 3)


@pytest.mark.parametrize("age", ["old", "young"])
async def test_an_old_row_behind_a_young_one_is_kept_with_it(rig: Rig, age: str) -> None:
    """The log has no holes."""
    await put(rig.engine, 0)
    await ordered(rig.engine)  # else both may stand in one row
    await put(rig.engine, 0)
    await ordered(rig.engine)
    hour = 3_600_000_000 if rig.engine.name == "sqlite" else "interval '1 hour'"
    last = 2 if age == "old" else 1
    rig.raw(f"update event_log set at = at - {hour} where last = {last}")
    assert await rig.engine.events.trim(600, 100) == (1 if age == "young" else 0)
