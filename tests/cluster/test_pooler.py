"""Through PgBouncer in transaction mode: a daemon notices, relies on nothing that a session keeps,
and outlives the pooler.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from datetime import datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import attrs
import psycopg
import pytest
import trio

from musterd.store.duties import Holder
from musterd.store.errors import StoreMisconfigured
from musterd.store.leases import ClaimRequest, Ends
from musterd.store.lifecycle import JobState
from musterd.store.postgres.engine import PostgresEngine
from musterd.store.schedules import Firing
from tests.contract.job_tools import ending, put
from tests.contract.rigs import LEASE_SECONDS, OPTIONS, SCHEMA, closing_engine
from tests.fix_postgres import FreshDatabase
from tests.support.command import Home, eventually
from tests.support.pgbouncer import PgBouncer, running
from tests.support.postgres_server import PostgresServer
from tests.support.servers import Load, Session, check_ended_once, count_ended, ended, states

MOST = 4
NODES = 6
JOBS = 60
ENOUGH_SECONDS = 20.0
QUIET_SECONDS = 0.5


@attrs.frozen
class Scene:
    """A database, and the two ways to it."""

    bouncer: PgBouncer
    direct: str
    pooled: str

    def engine(self, url: str | None = None, listen_url: str = "") -> PostgresEngine:
        options = attrs.evolve(OPTIONS, listen_url=listen_url)
        return PostgresEngine(url or self.pooled, SCHEMA, options, Random(1))


@pytest.fixture
def scene(postgres: PostgresServer, fresh_database: FreshDatabase) -> Generator[Scene]:
    direct = fresh_database()
    with running(postgres) as bouncer:
        yield Scene(bouncer, direct, bouncer.url(direct.rpartition("/")[2]))


@pytest.fixture
async def engine(scene: Scene) -> AsyncGenerator[PostgresEngine, Any]:
    engine = scene.engine()
    async with closing_engine(engine):
        await engine.open()
        await engine.migrate()
        yield engine


async def test_a_cap_holds_and_work_is_shared_once(scene: Scene, engine: PostgresEngine) -> None:
    """Six nodes through one pooler; what bounds them are locks of transactions, not of sessions."""
    made = await put(engine, *[0] * JOBS)
    taken: list[int] = []
    held: list[int] = []

    async def work(node: int) -> None:
        async with closing_engine(scene.engine()) as own:
            while len(taken) < JOBS:
                request = ClaimRequest(uuid4(), f"n{node}", (1, 2), 0, LEASE_SECONDS, (), MOST)
                claims = (await own.leases.exchange(Ends(), request)).claims
                taken.extend(claim.id for claim in claims)
                held.extend(claim.id for claim in claims)
                assert len(held) <= MOST
                await trio.sleep(0.01)
                for claim in claims:
                    held.remove(claim.id)
                await own.leases.exchange(Ends([ending(claim) for claim in claims]), None)

    with trio.fail_after(ENOUGH_SECONDS):
        async with trio.open_nursery() as nursery:
            for node in range(NODES):
                nursery.start_soon(work, node)
    assert sorted(taken) == made
    assert (await engine.queue.counts()).by_state[JobState.SUCCEEDED] == JOBS


async def test_a_duty_and_a_slot_are_taken_by_one(scene: Scene, engine: PostgresEngine) -> None:
    record = (await engine.schedules.know(["nightly"]))[0]
    won: list[str] = []
    fired: list[int] = []

    async def stand(node: str) -> None:
        async with closing_engine(scene.engine()) as own:
            if await own.duties.take(("reaping",), Holder(node, uuid4(), uuid4(), 10.0)):
                won.append(node)
            slot = await own.schedules.fire(slot_of(record.now))
            fired.extend([slot.job_id] if slot.job_id is not None else [])

    async with trio.open_nursery() as nursery:
        for node in range(NODES):
            nursery.start_soon(stand, f"n{node}")
    assert len(won) == 1
    assert len(fired) == 1


def slot_of(at: datetime) -> Firing:
    return Firing("nightly", at, "report", "{}", priority=0, target=None)


async def test_hints_come_past_the_pooler_or_not_at_all(
    scene: Scene, engine: PostgresEngine
) -> None:
    hearing = scene.engine(listen_url=scene.direct)
    async with closing_engine(hearing), trio.open_nursery() as nursery:
        with trio.fail_after(ENOUGH_SECONDS):
            while not (await hearing.queue.wait_for_hint()).new_work:  # the first says: listening
                pass
            nursery.start_soon(partial(put, engine, 0))
            assert (await hearing.queue.wait_for_hint()).new_work
    with trio.move_on_after(QUIET_SECONDS) as deaf:
        await engine.queue.wait_for_hint()
    assert deaf.cancelled_caught


@pytest.mark.parametrize(
    ("found", "instead", "said"),
    [
        ("/test_", "/test_?options=-cjit%3Doff&dbname=test_", "unsupported startup parameter"),
        ("//musterd:", "//stranger:", "authentication failed"),
    ],
)
async def test_what_the_pooler_refuses_is_no_weather(
    scene: Scene, found: str, instead: str, said: str
) -> None:
    async with closing_engine(scene.engine(scene.pooled.replace(found, instead))) as engine:
        with pytest.raises(StoreMisconfigured, match=said):
            await engine.open()


def more_ended_than(session: Session, count: int) -> bool:
    return count_ended(session) > count


def test_a_pooler_that_dies_under_load_is_waited_for(
    scene: Scene, tmp_path: Path, options: tuple[str, ...]
) -> None:
    home = Home(tmp_path / "state", scene.pooled)
    with home.daemon(*options) as daemon:
        daemon.wait_until_ready()
        with (
            Load(scene.pooled) as load,
            psycopg.connect(scene.direct, autocommit=True) as session,
        ):
            eventually(lambda: count_ended(session) > 100)
            for _ in range(2):
                scene.bouncer.stop()
                wanted = len(load.promised) + 100
                scene.bouncer.start()
                eventually(partial(more_ended_than, session, wanted))
            load.end()
            eventually(lambda: set(load.promised) <= ended(session).keys())
            eventually(lambda: set(states(session)) == {"succeeded"})
            check_ended_once(session)
        assert daemon.process.poll() is None
