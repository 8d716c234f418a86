"""Two writers at once: what one holds the other skips or waits for, and nothing is done twice."""

import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trio

from musterd.store.engine import Engine
from musterd.store.errors import StoreUnavailable
from musterd.store.jobs import NewJob
from musterd.store.leases import Claim, Hold
from musterd.store.lifecycle import JobState
from musterd.store.sqlite.engine import SqliteEngine
from tests.contract.job_tools import ending, ids, put, reap_by, settle, state_of, take, take_one
from tests.contract.pair_programs import claiming
from tests.contract.rigs import SCHEMA, PostgresRig, Rig, SqliteRig, closing_engine, opened
from tests.contract.target_tools import put_target, take_all

WAITING = "select 1 from pg_locks where not granted"
REQUEUE = reap_by("requeue", 10, 100)


async def test_two_engines_never_claim_the_same_job(shared: Rig) -> None:
    made = await shared.engine.jobs.enqueue([NewJob("a")] * 300)
    taken: list[int] = []

    async def work(engine: Engine) -> None:
        while claims := await take(engine, workers=7):
            taken.extend(ids(claims))
            await settle(engine, *(ending(claim) for claim in claims))

    async with closing_engine(shared.another()) as other:
        await other.open()
        async with trio.open_nursery() as nursery:
            for engine in (shared.engine, other, shared.engine, other):
                nursery.start_soon(work, engine)
    assert sorted(taken) == made
    assert (await shared.engine.queue.counts()).by_state[JobState.SUCCEEDED] == 300


async def test_two_reapers_end_each_lease_once(shared: Rig) -> None:
    await put(shared.engine, *[0] * 40)
    claims = await take(shared.engine, workers=40)
    shared.pass_time(60)
    reaped: list[int] = []

    async def reap(engine: Engine) -> None:
        while ended := await engine.leases.reap(reap_by("fail", 9, 7)):
            reaped.extend(one.id for one in ended)

    async with closing_engine(shared.another()) as other:
        await other.open()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reap, shared.engine)
            nursery.start_soon(reap, other)
    assert sorted(reaped) == ids(claims)


# Of a job: its own row, its place in the order of claims, its lease.
ROW, PLACE, LEASE = (
    "job_rows where id = %s",
    "ready where first_id = %s",
    "leases where jobs @> %s::bigint",
)


@asynccontextmanager
async def row_locked(rig: PostgresRig, job_id: int, which: str = ROW) -> AsyncGenerator[None]:
    with psycopg.connect(rig.url) as connection:
        found = connection.execute(f"select 1 from {SCHEMA}.{which} for update".encode(), [job_id])
        assert found.fetchone()
        yield
        connection.rollback()


class TestPostgresRowLocks:
    @pytest.fixture
    async def locks(self, fresh_database: Callable[[], str]) -> AsyncGenerator[PostgresRig, Any]:
        rig = PostgresRig(fresh_database())
        async with opened(rig):
            yield rig

    async def test_a_claim_skips_a_locked_job_and_takes_the_next(self, locks: PostgresRig) -> None:
        first, second = await put(locks.engine, 0, 0)
        async with row_locked(locks, first, PLACE):
            assert ids(await take(locks.engine, workers=2)) == [second]
        assert ids(await take(locks.engine, workers=2)) == [first]

    async def test_a_claim_leaves_a_target_whose_first_job_is_locked(
        self, locks: PostgresRig
    ) -> None:
        first, second = await put_target(locks.engine, 0, 0)
        async with row_locked(locks, first, PLACE):
            assert await take_all(locks.engine) == []
        assert ids(await take_all(locks.engine)) == [first]
        assert locks.raw("select id from live_jobs where behind") == [(second,)]

    async def test_a_free_target_goes_to_the_claim_that_was_first(self, locks: PostgresRig) -> None:
        """Though a more urgent job of it came meanwhile."""
        await put_target(locks.engine, 0)
        found: list[Claim] = []

        async def claim() -> None:
            found.extend(await take_all(locks.engine))

        with trio.fail_after(10), psycopg.connect(locks.url) as first:
            for step in claiming("west", 1, targeted=True, capped=False):
                step.run(first)
            await put_target(locks.engine, 1)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(claim)
                while not locks.raw(WAITING):  # noqa: ASYNC110 - only asking again tells
                    await trio.sleep(0.005)
                first.commit()
        assert found == []

    async def test_a_reap_never_waits_for_a_locked_job(self, locks: PostgresRig) -> None:
        first, second = await put(locks.engine, 0, 0)
        await take(locks.engine, workers=2)
        locks.pass_time(60)
        async with row_locked(locks, first):
            assert [one.id for one in await locks.engine.leases.reap(REQUEUE)] == [second]
        assert [one.id for one in await locks.engine.leases.reap(REQUEUE)] == [first]

    async def test_a_settlement_leaves_out_a_locked_job_which_can_be_settled_again(
        self, locks: PostgresRig
    ) -> None:
        await put(locks.engine, 0, 0)
        first, second = await take(locks.engine, workers=2)
        async with row_locked(locks, first.id):
            visit = await settle(locks.engine, ending(first), ending(second))
            assert visit.held_up == {first.id}
            assert await state_of(locks.engine, first.id) is JobState.RUNNING
        assert await state_of(locks.engine, second.id) is JobState.SUCCEEDED
        visit = await settle(locks.engine, ending(first))
        assert visit.rejected == visit.held_up == frozenset()

    async def test_a_renewal_gives_up_on_a_locked_job_and_can_be_made_again(
        self, locks: PostgresRig
    ) -> None:
        await put(locks.engine, 0)
        claim = await take_one(locks.engine)
        hold = Hold(claim.id, claim.token, None, None)
        async with row_locked(locks, claim.id, LEASE):
            with pytest.raises(StoreUnavailable):
                await locks.engine.leases.renew([hold], 30)
        assert (await locks.engine.leases.renew([hold], 30)).kept == {claim.id}


class TestSqliteWriteLock:
    @pytest.fixture
    async def impatient(self, tmp_path: Path) -> AsyncGenerator[SqliteRig, Any]:
        rig = SqliteRig(str(tmp_path / "store.db"))
        rig.engine = SqliteEngine(rig.path, lambda: rig.now, busy_timeout_seconds=0.05)
        async with opened(rig):
            yield rig

    async def test_each_write_gives_up_while_another_writes_and_reads_go_on(
        self, impatient: SqliteRig
    ) -> None:
        engine = impatient.engine
        await put(engine, 0, 0)
        claim = await take_one(engine)
        writes: list[Callable[[], Awaitable[object]]] = [
            lambda: put(engine, 0),
            lambda: take(engine),
            lambda: settle(engine, ending(claim)),
            lambda: engine.leases.renew([Hold(claim.id, claim.token, None, None)], 30),
            lambda: engine.leases.reap(REQUEUE),
        ]
        with closing(sqlite3.connect(impatient.path, isolation_level=None)) as other:
            other.execute("begin immediate")
            for write in writes:
                with pytest.raises(StoreUnavailable) as refused:
                    await write()
                assert refused.value.trouble == "timeout"
            assert (await engine.queue.counts()).enqueued_total == 2
            other.execute("rollback")
        assert (await settle(engine, ending(claim))).rejected == frozenset()

    async def test_a_write_waits_for_a_short_one_to_end(self, shared_sqlite: SqliteRig) -> None:
        done = trio.Event()

        async def enqueue() -> None:
            await put(shared_sqlite.engine, 0)
            done.set()

        with closing(sqlite3.connect(shared_sqlite.path, isolation_level=None)) as other:
            other.execute("begin immediate")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(enqueue)
                await trio.sleep(0.05)
                assert not done.is_set()
                other.execute("rollback")
        assert done.is_set()

    @pytest.fixture
    async def shared_sqlite(self, tmp_path: Path) -> AsyncGenerator[SqliteRig, Any]:
        rig = SqliteRig(str(tmp_path / "store.db"))
        async with opened(rig):
            yield rig
