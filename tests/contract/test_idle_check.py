"""The idle check: what an idle node sees from where its hints come, and when it sees nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import psycopg
import pytest
import trio

from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.jobs import NewJob
from musterd.store.queue import IdleCheck
from tests.contract.job_tools import put, take
from tests.contract.rigs import PostgresRig, SqliteRig, closing_engine, opened
from tests.support.beats import live_node

PAUSE_SECONDS = 0.05
SECONDS = 5  # far more than an answer takes
REST = IdleCheck(at_rest=True, due=False, next_due_seconds=None)


@asynccontextmanager
async def listening(engine: Engine) -> AsyncGenerator[UUID]:
    """A node that lives and waits for hints, also after a loss; gives its id."""
    me = (await live_node(engine)).id

    async def listen() -> None:
        while True:
            try:
                await engine.queue.wait_for_hint()
            except StoreError:
                await trio.sleep(PAUSE_SECONDS)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        yield me
        nursery.cancel_scope.cancel()


async def look(engine: Engine, me: UUID) -> IdleCheck | None:
    with trio.fail_after(SECONDS):
        return await engine.idle.check(me)


async def test_an_empty_store_rests(postgres_rig: PostgresRig) -> None:
    async with listening(postgres_rig.engine) as me:
        assert await look(postgres_rig.engine, me) == REST


async def test_a_store_that_does_not_know_the_node_is_another_one(
    postgres_rig: PostgresRig,
) -> None:
    async with listening(postgres_rig.engine):
        assert await look(postgres_rig.engine, uuid4()) is None


async def test_there_is_none_where_nobody_listens(postgres_rig: PostgresRig) -> None:
    me = (await live_node(postgres_rig.engine)).id
    assert await look(postgres_rig.engine, me) is None


async def test_what_is_due_is_seen(postgres_rig: PostgresRig) -> None:
    async with listening(postgres_rig.engine) as me:
        await put(postgres_rig.engine, 0)
        assert await look(postgres_rig.engine, me) == IdleCheck(False, True, None)


async def test_a_paused_queue_rests(postgres_rig: PostgresRig) -> None:
    async with listening(postgres_rig.engine) as me:
        await put(postgres_rig.engine, 0)
        await postgres_rig.engine.queue.pause("anna")
        assert await look(postgres_rig.engine, me) == REST


async def test_what_is_in_hand_may_come_back_without_a_hint(postgres_rig: PostgresRig) -> None:
    async with listening(postgres_rig.engine) as me:
        await put(postgres_rig.engine, 0)
        await take(postgres_rig.engine)
        assert await look(postgres_rig.engine, me) == IdleCheck(False, False, None)


async def test_a_delayed_job_is_foreseen(postgres_rig: PostgresRig) -> None:
    async with listening(postgres_rig.engine) as me:
        await postgres_rig.engine.jobs.enqueue([NewJob("a", delay_seconds=90)])
        seen = await look(postgres_rig.engine, me)
        assert seen is not None
        assert seen.at_rest
        assert seen.next_due_seconds == pytest.approx(90, abs=10)


async def test_who_is_writing_jobs_may_have_left_the_bell_to_another(
    postgres_rig: PostgresRig,
) -> None:
    """Its job is not to be seen yet, and who rang for it may have been done long ago."""
    async with listening(postgres_rig.engine) as me:
        with psycopg.connect(postgres_rig.url) as writer:
            writer.execute("insert into musterd.jobs (kind) values ('a')")
            assert await look(postgres_rig.engine, me) == IdleCheck(False, False, None)
            writer.rollback()
        assert await look(postgres_rig.engine, me) == REST


async def test_a_hint_that_comes_with_an_answer_is_heard(postgres_rig: PostgresRig) -> None:
    engine, heard = postgres_rig.engine, trio.Event()
    me = (await live_node(engine)).id

    async def listen() -> None:
        while True:
            nonlocal heard
            await engine.queue.wait_for_hint()
            heard.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await look(engine, me)
        for _ in range(50):
            heard = trio.Event()
            nursery.start_soon(engine.jobs.enqueue, [NewJob("a")])
            await look(engine, me)
            with trio.fail_after(SECONDS):
                await heard.wait()
        nursery.cancel_scope.cancel()


async def test_a_connection_that_was_cut_is_not_taken_for_a_quiet_one(
    postgres_rig: PostgresRig,
) -> None:
    async with listening(postgres_rig.engine) as me:
        assert await look(postgres_rig.engine, me) == REST
        postgres_rig.raw(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where query like '-- idle_check%' and pid <> pg_backend_pid()"
        )
        assert await look(postgres_rig.engine, me) in (None, REST)
        assert await look(postgres_rig.engine, me) == REST


async def test_an_embedded_store_has_none(unopened_sqlite: SqliteRig) -> None:
    async with opened(unopened_sqlite), closing_engine(unopened_sqlite.engine) as engine:
        me = (await live_node(engine)).id
        assert await look(engine, me) is None
