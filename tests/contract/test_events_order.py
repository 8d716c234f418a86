"""Many write at once, some hold their transactions open: no reader misses, repeats or reorders."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import pairwise
from random import Random
from typing import Any

import psycopg
import trio

from musterd.store.engine import Engine
from musterd.store.events import PAGE_EVENTS_MAX, Event
from musterd.store.postgres.migrating import apply_roles, role_names
from tests.contract.event_tools import everything, follow, ordered, types_told
from tests.contract.job_tools import put
from tests.contract.rigs import PostgresRig, closing_engine

WRITERS, ROUNDS, READERS = 16, 20, 3
HELD_SECONDS_MAX = 0.02

Connection = psycopg.Connection[Any]


def write(url: str, number: int, kept: list[list[int]]) -> None:
    """Transactions of one writer: jobs made, some of them canceled, some undone; held open."""
    rng = Random(number)
    with psycopg.connect(url) as connection:
        for _ in range(ROUNDS):
            made = connection.execute(
                "select musterd.enqueue_many(%s::jsonb)",
                ["[" + ", ".join(['{"kind": "a"}'] * rng.randint(1, 3)) + "]"],
            ).fetchall()
            time.sleep(rng.uniform(0, HELD_SECONDS_MAX))
            if rng.random() < 0.5:
                connection.execute("select musterd.cancel(%s)", made[0])
                time.sleep(rng.uniform(0, HELD_SECONDS_MAX))
            if rng.random() < 0.2:
                connection.rollback()
                continue
            connection.commit()
            kept.append([row[0] for row in made])
            if rng.random() < 0.3:
                connection.execute("select musterd.pause(%s)", made[-1]) if len(made) > 1 else None
                connection.commit()


async def keep_reading(engine: Engine, writers: list[threading.Thread]) -> list[Event]:
    seen: list[Event] = []
    position, busy = 0, True
    while busy:
        busy = any(writer.is_alive() for writer in writers)
        await engine.events.order()
        found, position = await follow(engine, position)
        seen += found
        await trio.sleep(0.001)
    await ordered(engine)
    return seen + (await follow(engine, position))[0]


async def test_readers_get_everything_once_and_in_one_order(postgres_rig: PostgresRig) -> None:
    url, kept = postgres_rig.url, list[list[int]]()
    writers = [
        threading.Thread(target=write, args=(url, number, kept)) for number in range(WRITERS)
    ]
    seen: list[list[Event]] = [[] for _ in range(READERS)]

    async def read(number: int) -> None:
        async with closing_engine(postgres_rig.another()) as engine:
            await engine.open()
            seen[number] = await keep_reading(engine, writers)

    for writer in writers:
        writer.start()
    async with trio.open_nursery() as nursery:
        for number in range(READERS):
            nursery.start_soon(read, number)
    for writer in writers:
        writer.join()
    whole = await everything(postgres_rig.engine)
    assert [event.id for event in whole] == list(range(1, len(whole) + 1))
    assert all(one == whole for one in seen)
    made = [event.job_id for event in whole if event.type == "job.enqueued"]
    assert sorted(one for one in made if one) == sorted(one for ids in kept for one in ids)
    assert_told_in_order(whole)


def assert_told_in_order(events: list[Event]) -> None:
    of_job: dict[int, list[str]] = {}
    for event in events:
        of_job.setdefault(event.job_id or 0, []).append(event.type)
    followed = {pair for types in of_job.values() for pair in pairwise(types)}
    assert followed == {("job.enqueued", "job.canceled"), ("job.enqueued", "job.paused")}


@contextmanager
def open_transaction(rig: PostgresRig) -> Generator[Connection]:
    with psycopg.connect(rig.url) as connection:
        yield connection
        connection.rollback()


async def test_an_open_transaction_holds_nobody_up(postgres_rig: PostgresRig) -> None:
    log = postgres_rig.engine.events
    with open_transaction(postgres_rig) as slow:
        (early,) = slow.execute("select musterd.enqueue('slow')").fetchall()[0]
        (late,) = await put(postgres_rig.engine, 0)
        with trio.fail_after(5):
            found = await everything(postgres_rig.engine)
        assert [event.job_id for event in found] == [late]
        assert await log.order() == 1
        slow.commit()
    found, _ = await follow(postgres_rig.engine, await log.order() - 1)
    assert [(event.id, event.job_id) for event in found] == [(2, early)]


async def test_what_is_committed_while_drafts_are_taken_stays_in_its_order(
    postgres_rig: PostgresRig,
) -> None:
    """The earlier draft of a job lies before the first that is seen, the later one behind it."""
    engine = postgres_rig.engine
    with open_transaction(postgres_rig) as slow:
        (job_id,) = slow.execute("select musterd.enqueue('slow')").fetchall()[0]
        await put(engine, 0)
        slow.execute("select musterd.cancel(%s)", [job_id])
        await put(engine, 0)
        slow.execute("lock table musterd.event_drafts in share mode")  # they can be seen, not taken
        async with trio.open_nursery() as nursery:
            nursery.start_soon(engine.events.order)
            await until_waits_for_a_lock(postgres_rig)
            slow.commit()
    assert await types_told(engine, job_id) == ["enqueued", "canceled"]


async def until_waits_for_a_lock(rig: PostgresRig) -> None:
    waits = "select count(*) from pg_locks where not granted and locktype = 'relation'"
    with trio.fail_after(5):
        while rig.raw(waits) == [(0,)]:  # noqa: ASYNC110 - only asking again tells
            await trio.sleep(0.01)


async def test_what_is_rolled_back_is_not_told(postgres_rig: PostgresRig) -> None:
    (job_id,) = await put(postgres_rig.engine, 0)
    with open_transaction(postgres_rig) as undone:
        undone.execute("select musterd.enqueue('a')")
        undone.execute("select musterd.cancel(%s)", [job_id])
    assert await types_told(postgres_rig.engine, job_id) == ["enqueued"]
    assert len(await everything(postgres_rig.engine)) == 1


async def test_several_may_put_in_order_at_once(postgres_rig: PostgresRig) -> None:
    statement = "select musterd.enqueue('a') from generate_series(1, 3000)"
    postgres_rig.raw(statement)
    engines = [postgres_rig.another() for _ in range(3)]
    async with trio.open_nursery() as nursery:
        for engine in engines:
            nursery.start_soon(ordered, engine)
    for engine in engines:
        await engine.close()
    found = await everything(postgres_rig.engine)
    assert [event.id for event in found] == list(range(1, 3001))
    assert [event.job_id for event in found] == list(range(1, 3001))
    assert postgres_rig.raw("select last from event_head") == [(3000,)]
    assert postgres_rig.raw("select count(*) from event_drafts") == [(0,)]


async def test_an_insert_of_many_rows_is_told_in_bounded_rows(postgres_rig: PostgresRig) -> None:
    postgres_rig.raw("insert into jobs (kind) select 'a' from generate_series(1, 10000)")
    into = "copy musterd.job_rows (kind, target) from stdin"
    with psycopg.connect(postgres_rig.url) as connection, connection.cursor().copy(into) as copy:
        copy.write("".join(f"b\t{number}\n" for number in range(1, 2501)))
    await ordered(postgres_rig.engine)
    (largest,) = postgres_rig.raw("select max(size) from event_log")[0]
    assert largest <= 1000
    page = await postgres_rig.engine.events.read(0)
    assert len(page.events) <= PAGE_EVENTS_MAX + 1000
    found = await everything(postgres_rig.engine)
    assert sorted(event.job_id or 0 for event in found) == list(range(1, 12501))
    targets = [event.target for event in found if event.kind == "b"]
    assert sorted(int(one or 0) for one in targets) == list(range(1, 2501))


async def test_who_may_only_call_the_functions_is_told_of(postgres_rig: PostgresRig) -> None:
    apply_roles(postgres_rig.url, "musterd")
    postgres_rig.raw("insert into kind_rules (kind, webhook) values ('', 'https://all.example/')")
    with psycopg.connect(postgres_rig.url, autocommit=True) as connection:
        connection.execute(f'set role "{role_names("musterd")["enqueue"]}"'.encode())
        for call in ("enqueue('a', hold => true)", "release(1)", "pause(1)", "resume(1)"):
            connection.execute(f"select musterd.{call}".encode())
        connection.execute("select musterd.pause(1)")
        connection.execute("select musterd.clear(1)")
    assert await types_told(postgres_rig.engine, 1) == [
        "enqueued", "released", "paused", "resumed", "paused", "canceled",
    ]  # fmt: skip
    assert postgres_rig.raw("select job_id, type from webhooks") == [(1, "job.canceled")]


async def test_the_daemons_role_may_order_read_and_trim(postgres_rig: PostgresRig) -> None:
    await put(postgres_rig.engine, 0)
    apply_roles(postgres_rig.url, "musterd")
    with psycopg.connect(postgres_rig.url, autocommit=True) as connection:
        connection.execute(f'set role "{role_names("musterd")["daemon"]}"'.encode())
        assert connection.execute("select musterd.order_events(10)").fetchone() == (1,)
        assert connection.execute("select id, type from musterd.events").fetchall() == [
            (1, "job.enqueued")
        ]
        connection.execute("delete from musterd.event_log")
