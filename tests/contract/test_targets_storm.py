"""Many at once on a few targets: never two of one at a time, the order kept, nothing stuck."""

import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import attrs
import psycopg
import pytest
import trio

from musterd.store.engine import Engine
from musterd.store.jobs import JobFilter
from musterd.store.leases import Claim, Ends
from musterd.store.lifecycle import Action, JobState
from tests.contract.job_tools import ending, visit
from tests.contract.rigs import PostgresRig, Rig, closing_engine, opened
from tests.contract.target_tools import check, put_target, rows_of, take_all
from tests.fix_postgres import FreshDatabase

SECONDS = 3.0
TASKS = 8
TARGETS = [f"t{number}" for number in range(5)]
JOBS = 80  # of each target
ACTED_ON = 5  # every so many
HALTING = JobFilter(states=(JobState.FAILED, JobState.PAUSED), limit=20)
ENDINGS = {JobState.SUCCEEDED: 8, JobState.QUEUED: 3, JobState.FAILED: 1}


@attrs.define
class Storm:
    """`first_claims`: of each target, in the order in which they were made."""

    made: list[int]
    until_local: float
    rng: random.Random = attrs.field(factory=lambda: random.Random(3))
    first_claims: dict[str, list[int]] = attrs.field(factory=dict[str, list[int]])
    running: set[str] = attrs.field(factory=set[str])

    async def rage(self, nodes: list[Engine], other: Engine) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.steer, other)
            for node in nodes:
                nursery.start_soon(self.work, node)

    async def work(self, engine: Engine) -> None:
        held: list[Claim] = []
        while held or trio.current_time() < self.until_local:
            wanted = self.rng.randint(1, 4) if trio.current_time() < self.until_local else 0
            # The claim of this visit may take a target that its settlements pass on.
            self.running.difference_update(str(one.target) for one in held)
            exchange = await visit(engine, wanted, [ending(one, self._end()) for one in held])
            assert exchange.rejected == frozenset()
            held = exchange.claims
            for claim in held:
                self._claimed(claim)

    async def steer(self, engine: Engine) -> None:
        """Acts on some jobs, and has what halts resumed."""
        some = [job_id for job_id in self.made if job_id % ACTED_ON == 0]
        while trio.current_time() < self.until_local:
            action = self.rng.choice([Action.PAUSE, Action.RESUME, Action.CANCEL])
            await engine.control.apply(action, self.rng.choice(some))
            for record in await engine.jobs.find(HALTING):
                await engine.control.apply(Action.RESUME, record.id)

    def _end(self) -> JobState:
        return self.rng.choices(list(ENDINGS), list(ENDINGS.values()))[0]

    def _claimed(self, claim: Claim) -> None:
        target = str(claim.target)
        assert target not in self.running, f"two of {target} at a time"
        self.running.add(target)
        if claim.attempt == 1:
            self.first_claims.setdefault(target, []).append(claim.id)


@asynccontextmanager
async def engines(rig: Rig) -> AsyncGenerator[list[Engine]]:
    async with AsyncExitStack() as stack:
        found = [
            await stack.enter_async_context(closing_engine(rig.another())) for _ in range(TASKS)
        ]
        for engine in found:
            await engine.open()
        yield found


async def test_a_storm_leaves_nothing_undone(shared: Rig) -> None:
    made: list[int] = []
    for _ in range(JOBS):
        for target in TARGETS:
            made += await put_target(shared.engine, 0, target=target)
    async with engines(shared) as nodes:
        storm = Storm(made, trio.current_time() + SECONDS)
        with trio.fail_after(60):
            await storm.rage(nodes, shared.engine)
        check(shared)
        await drain(shared)
    for claims in storm.first_claims.values():
        alone = [job_id for job_id in claims if job_id % ACTED_ON]
        assert alone == sorted(alone)
    assert sum(map(len, storm.first_claims.values())) > TASKS


async def drain(rig: Rig) -> None:
    held: list[Claim] = []
    rig.pass_time(10)
    for _ in range(len(TARGETS) * JOBS):
        for record in await rig.engine.jobs.find(HALTING):
            await rig.engine.control.apply(Action.RESUME, record.id)
        held = await take_all(rig.engine, 9, [ending(one) for one in held])
        if not held:
            break
    assert {row.state for row in rows_of(rig).values()} <= {"succeeded", "canceled"}
    assert rig.raw("select * from target_holders") == []


async def test_a_transaction_of_an_older_moment_passes_nothing_on_unseen(
    fresh_database: FreshDatabase,
) -> None:
    """It sees neither who was put behind meanwhile nor that the target is theirs next."""
    async with opened(PostgresRig(fresh_database())) as rig:
        assert isinstance(rig, PostgresRig)
        (first,) = await put_target(rig.engine, 0)
        (claim,) = await take_all(rig.engine)
        retrying = ending(claim, JobState.QUEUED, delay_seconds=1000.0)
        await rig.engine.leases.exchange(Ends([retrying]), None)
        with psycopg.connect(rig.url) as old:
            old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            old.execute("select 1 from musterd.job_rows")
            (second,) = await put_target(rig.engine, 0)
            assert await take_all(rig.engine) == []
            with pytest.raises(psycopg.errors.SerializationFailure):
                old.execute(f"select musterd.cancel({first})".encode())
            old.rollback()
            old.execute(f"select musterd.cancel({first})".encode())
            old.commit()
        check(rig)
        assert [one.id for one in await take_all(rig.engine)] == [second]
