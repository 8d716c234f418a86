"""Hints: new work wakes who waits, from the same engine and from another one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import attrs
import psycopg
import pytest
import trio

from musterd.store.engine import Engine
from musterd.store.jobs import NewJob
from tests.contract.rigs import PostgresRig, Rig, closing_engine

SECONDS = 5  # far more than a hint takes
QUIET_SECONDS = 0.15


@attrs.define
class Listener:
    """Counts the hints of one engine, as a daemon waits for them: in one task, all the time."""

    engine: Engine
    heard: int = 0
    bell: trio.Event = attrs.field(factory=trio.Event)

    async def listen(self) -> None:
        while True:
            await self.engine.queue.wait_for_hint()
            self.heard += 1
            self.bell.set()
            self.bell = trio.Event()

    async def quiet(self) -> None:
        """Until nothing has been heard for a while: an engine may hint as it begins to listen."""
        before = -1
        while self.heard != before:
            before = self.heard
            await trio.sleep(QUIET_SECONDS)


@asynccontextmanager
async def listening(engine: Engine) -> AsyncGenerator[Listener]:
    await engine.start_node("north")
    listener = Listener(engine)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.listen)
        await listener.quiet()
        yield listener
        nursery.cancel_scope.cancel()


async def enqueue_and_hear(listener: Listener, engine: Engine) -> None:
    async with trio.open_nursery() as nursery:
        bell = listener.bell
        nursery.start_soon(engine.jobs.enqueue, [NewJob("a")])
        with trio.fail_after(SECONDS):
            await bell.wait()
    await listener.quiet()


async def test_an_enqueue_wakes_its_own_engine(rig: Rig) -> None:
    async with listening(rig.engine) as listener:
        await enqueue_and_hear(listener, rig.engine)
        await enqueue_and_hear(listener, rig.engine)


async def test_an_enqueue_wakes_the_daemon_of_another_engine(shared: Rig) -> None:
    async with closing_engine(shared.another()) as other, listening(shared.engine) as listener:
        await other.open()
        await enqueue_and_hear(listener, other)
        await enqueue_and_hear(listener, other)


async def test_nobody_is_woken_without_a_cause(rig: Rig) -> None:
    async with listening(rig.engine) as listener:
        before = listener.heard
        await rig.engine.queue.counts()
        await trio.sleep(QUIET_SECONDS)
        assert listener.heard == before


async def test_a_resumed_queue_wakes_the_daemon(rig: Rig) -> None:
    await rig.engine.queue.pause("anna")
    async with listening(rig.engine) as listener:
        bell = listener.bell
        await rig.engine.queue.resume()
        with trio.fail_after(SECONDS):
            await bell.wait()


async def test_hints_that_nobody_waits_for_do_no_harm(shared: Rig) -> None:
    await shared.engine.start_node("north")
    for _ in range(50):
        await shared.engine.jobs.enqueue([NewJob("a")])
    with trio.fail_after(SECONDS):
        await shared.engine.queue.wait_for_hint()
    assert (await shared.engine.queue.counts()).enqueued_total == 50


def channel_of(rig: PostgresRig) -> str:
    """As one knows it who has read the store's own tables."""
    ((name,),) = rig.raw("select name from hint_channel")
    return str(name)


@pytest.mark.parametrize("text", ["9" * 5000, "²", "-1", "drop table", "1e9", "٣"])
async def test_what_strangers_notify_is_not_heard(postgres_rig: PostgresRig, text: str) -> None:
    """Any role that may connect can send to the channel."""
    async with listening(postgres_rig.engine) as listener:
        before = listener.heard
        with psycopg.connect(postgres_rig.url, autocommit=True) as stranger:
            stranger.execute("select pg_notify(%s, %s)", (channel_of(postgres_rig), text))
        await trio.sleep(QUIET_SECONDS)
        assert listener.heard == before
        await enqueue_and_hear(listener, postgres_rig.engine)


async def test_a_flood_of_strange_notifications_is_bounded(postgres_rig: PostgresRig) -> None:
    flood = "select count(pg_notify(%s, n::text)) from generate_series(1, 30000) n"
    async with listening(postgres_rig.engine) as listener:
        with psycopg.connect(postgres_rig.url, autocommit=True) as stranger:
            stranger.execute(flood, (channel_of(postgres_rig),))
        await listener.quiet()
        await enqueue_and_hear(listener, postgres_rig.engine)
