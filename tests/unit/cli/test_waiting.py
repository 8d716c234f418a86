"""Waiting ends when the jobs have, and outlasts a store that goes away."""

import uuid
from typing import Any, cast

import pytest
import trio
import trio.testing

from musterd.console.verbs.enqueue import Waited, wait_for
from musterd.store.errors import StoreUnavailable
from musterd.store.jobs import JobRecord, NewJob
from musterd.store.leases import ClaimRequest, Ends, Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.sqlite.engine import SqliteEngine
from tests.support.faulty_engine import PartOverlay


class Shaky(SqliteEngine):
    """A real store in memory that cannot be read for the first `failures` times."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__(":memory:", lambda: 1000.0 + trio.current_time(), busy_timeout_seconds=2.0)
        self.jobs = cast(Any, ShakyJobs(self.jobs, failures))


class ShakyJobs(PartOverlay):
    def __init__(self, part: object, failures: int) -> None:
        super().__init__(part)
        self.failures = failures

    async def get(self, job_id: int) -> JobRecord | None:
        if self.failures > 0:
            self.failures -= 1
            raise StoreUnavailable("gone fishing", "unreachable")
        record: JobRecord | None = await self.part.get(job_id)
        return record


async def opened(failures: int = 0) -> Shaky:
    engine = Shaky(failures)
    await engine.open()
    await engine.migrate()
    return engine


async def end(engine: Shaky, state: JobState, outcome: AttemptOutcome) -> None:
    """Runs the first claimable job to its end."""
    request = ClaimRequest(uuid.uuid4(), "n1", (1,), 0, 30.0)
    (claim,) = (await engine.leases.exchange(Ends(), request)).claims
    settled = Settlement(claim.id, claim.token, 1, 1, 0.0, 0.0, state, outcome)
    await engine.leases.exchange(Ends([settled]), None)


async def test_it_waits_for_all_and_counts_how_they_ended(
    autojump_clock: trio.testing.MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = await opened()
    ids = await engine.jobs.enqueue([NewJob("noop"), NewJob("noop")])

    async def work() -> None:
        await trio.sleep(3)
        await end(engine, JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED)
        await trio.sleep(3)
        await end(engine, JobState.FAILED, AttemptOutcome.FAILED)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        waited = Waited(ids, quiet=False)
        await wait_for(engine, waited)
        assert 6 <= trio.current_time() < 7
    assert (waited.ended, waited.succeeded) == ({"succeeded": 1, "failed": 1}, False)
    assert capsys.readouterr().out == "1 failed, 1 succeeded\n"
    await engine.close()


async def test_a_paused_job_moves_no_more_by_itself(
    autojump_clock: trio.testing.MockClock,
) -> None:
    engine = await opened()
    ids = await engine.jobs.enqueue([NewJob("noop")])
    await end(engine, JobState.PAUSED, AttemptOutcome.PAUSED)
    waited = Waited(ids, quiet=True)
    await wait_for(engine, waited)
    assert (waited.ended, waited.succeeded) == ({"paused": 1}, False)
    await engine.close()


async def test_a_store_that_is_away_is_waited_for_and_named_once(
    autojump_clock: trio.testing.MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = await opened(failures=3)
    ids = await engine.jobs.enqueue([NewJob("noop")])
    await end(engine, JobState.SUCCEEDED, AttemptOutcome.SUCCEEDED)
    waited = Waited(ids, quiet=True)
    await wait_for(engine, waited)
    assert waited.succeeded
    assert capsys.readouterr().err.count("gone fishing") == 1
    await engine.close()


async def test_a_job_that_nobody_takes_is_asked_about(
    autojump_clock: trio.testing.MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = await opened()
    ids = await engine.jobs.enqueue([NewJob("noop")])
    with trio.move_on_after(20):
        await wait_for(engine, Waited(ids, quiet=False))
    assert capsys.readouterr().err.count("is a daemon running?") == 1
    await engine.close()
