"""A job is read as it was at one moment, whatever becomes of it meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio

from musterd import Client
from musterd.store.jobs import AttemptRecord, JobFilter
from musterd.store.lifecycle import AttemptOutcome, JobState
from tests.contract.job_tools import ending, look, put, settle, take_one
from tests.contract.rigs import Rig
from tests.contract.test_client import url_of

ROUNDS = 150
Reading = tuple[str, int, list[tuple[int, str | None]]]
Read = Callable[[Rig, int], Awaitable[Reading]]


def attempts_of(found: tuple[AttemptRecord, ...]) -> list[tuple[int, str | None]]:
    return [(one.attempt, one.outcome and one.outcome.value) for one in found]


async def by_id(rig: Rig, job_id: int) -> Reading:
    record = await look(rig, job_id)
    return record.state.value, record.attempt, attempts_of(record.attempts)


async def by_list(rig: Rig, job_id: int) -> Reading:
    (record,) = await rig.engine.jobs.find(JobFilter(limit=1))
    assert record.id == job_id
    return record.state.value, record.attempt, attempts_of(record.attempts)


async def by_client(rig: Rig, job_id: int) -> Reading:
    with Client(url_of(rig)) as client:
        found = await trio.to_thread.run_sync(client.job, job_id)
    told = [(one["attempt"], one["outcome"]) for one in found["attempts"]]
    return found["state"], found["attempt"], told


@pytest.mark.parametrize("read", [by_id, by_list, by_client])
async def test_attempts_and_state_are_of_one_moment(shared: Rig, read: Read) -> None:
    (job_id,) = await put(shared.engine, 0)
    done = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(run_again_and_again, shared, done))
        while not done.is_set():
            check(*await read(shared, job_id))


async def run_again_and_again(rig: Rig, done: trio.Event) -> None:
    for _ in range(ROUNDS):
        claim = await take_one(rig.engine)
        given_back = ending(claim, JobState.QUEUED, AttemptOutcome.RELEASED, forgive=True)
        await settle(rig.engine, given_back)
    done.set()


def check(state: str, attempt: int, attempts: list[tuple[int, str | None]]) -> None:
    """Each attempt once, and only the last of a job in hand without an outcome."""
    assert [number for number, _ in attempts] == list(range(1, attempt + 1))
    open_ones = [number for number, outcome in attempts if outcome is None]
    assert open_ones == ([attempt] if state in ("assigned", "running") else [])
