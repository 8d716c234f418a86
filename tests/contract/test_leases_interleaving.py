"""What waits for a lease that another session changes, on PostgreSQL: its set is read under its
lock, never as it was when the statement began.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
import trio

from musterd.store.leases import Claim, Exchange, Hold, ProgressNote
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.postgres.exchanges import settlement_params
from musterd.store.postgres.leases import hold_params, progress_params
from tests.contract.event_tools import types_told
from tests.contract.job_tools import ending, put, settle, state_of, take
from tests.contract.rigs import SCHEMA, PostgresRig
from tests.contract.sessions import Connection, Statement
from tests.contract.test_successes import succeed

WAITS = (
    "select count(*) from pg_stat_activity"
    " where wait_event_type = 'Lock' and datname = current_database()"
)
PATIENCE_SECONDS = 10.0
End = Callable[[PostgresRig, Claim], Awaitable[Exchange]]


async def settle_one(rig: PostgresRig, claim: Claim) -> Exchange:
    return await settle(rig.engine, ending(claim, result="1"))


ends = pytest.mark.parametrize("end", [settle_one, succeed])


@asynccontextmanager
async def while_it_waits(
    rig: PostgresRig, call: Callable[[], Awaitable[Any]], replies: list[Any]
) -> AsyncGenerator[Connection]:
    """What the body does is committed once the call waits for it."""

    async def make() -> None:
        replies.append(await call())

    with psycopg.connect(rig.url) as session:
        session.execute(f"set search_path = {SCHEMA}".encode())
        async with trio.open_nursery() as nursery:
            yield session
            nursery.start_soon(make)
            await until_one_waits(rig)
            session.commit()


async def until_one_waits(rig: PostgresRig) -> None:
    with trio.fail_after(PATIENCE_SECONDS):
        while rig.raw(WAITS) == [(0,)]:  # noqa: ASYNC110 - nobody rings
            await trio.sleep(0.005)


def renewing(*claims: Claim) -> Statement:
    params = hold_params([Hold(one.id, one.token, None, None) for one in claims])
    return Statement("renew", {**params, "lease_seconds": 30.0})


@ends
async def test_a_lease_that_is_split_meanwhile_is_settled_all_the_same(
    postgres_rig: PostgresRig, end: End
) -> None:
    await put(postgres_rig.engine, *[0] * 3)
    claims = await take(postgres_rig.engine, workers=1, ahead=2)
    replies: list[Exchange] = []
    call = partial(end, postgres_rig, claims[0])
    async with while_it_waits(postgres_rig, call, replies) as session:
        renewing(*claims[1:]).run(session)
    assert [one.rejected for one in replies] == [frozenset()]
    assert await state_of(postgres_rig.engine, claims[0].id) is JobState.SUCCEEDED


@ends
@pytest.mark.parametrize("same", [False, True])
async def test_two_settlements_of_a_lease_take_out_each_its_own(
    postgres_rig: PostgresRig, end: End, *, same: bool
) -> None:
    await put(postgres_rig.engine, *[0] * 3)
    claims = await take(postgres_rig.engine, workers=1, ahead=2)
    first, second = claims[0], claims[0 if same else 1]
    replies: list[Exchange] = []
    async with while_it_waits(postgres_rig, lambda: end(postgres_rig, second), replies) as session:
        session.execute(
            b"update leases set jobs = jobs - int8multirange(int8range(%s, %s, '[]'))",
            [first.id, first.id],
        )
        session.execute(
            b"update job_rows set state = 'paused', attempt = attempt + 1, finished_at = now()"
            b" where id = %s",
            [first.id],
        )
    assert [one.rejected for one in replies] == [frozenset([second.id] if same else [])]
    assert await state_of(postgres_rig.engine, first.id) is JobState.PAUSED
    leased = postgres_rig.raw("select id from in_hand order by id")
    assert leased == [(one.id,) for one in claims if one not in (first, second)]


async def test_a_renewal_brings_back_nothing_that_has_ended(postgres_rig: PostgresRig) -> None:
    await put(postgres_rig.engine, *[0] * 2)
    claims = await take(postgres_rig.engine, workers=1, ahead=1)
    holds = [Hold(one.id, one.token, 1, one.claimed_epoch) for one in claims]
    replies: list[Any] = []
    call = partial(postgres_rig.engine.leases.renew, holds, 30)
    async with while_it_waits(postgres_rig, call, replies) as session:
        end = ending(claims[0], JobState.QUEUED, AttemptOutcome.RELEASED)
        Statement("settle", settlement_params([end])).run(session)
    assert [one.kept for one in replies] == [{claims[1].id}]
    assert postgres_rig.raw("select id from in_hand") == [(claims[1].id,)]


async def test_a_note_that_waits_for_the_end_of_its_attempt_is_fenced(
    postgres_rig: PostgresRig,
) -> None:
    await put(postgres_rig.engine, 0)
    (claim,) = await take(postgres_rig.engine)
    note = ProgressNote(claim.id, claim.token, 50, None, None)
    replies: list[frozenset[int]] = []
    call = partial(postgres_rig.engine.leases.note_progress, [note])
    async with while_it_waits(postgres_rig, call, replies) as session:
        end = ending(claim, JobState.QUEUED, AttemptOutcome.RELEASED)
        Statement("settle", settlement_params([end])).run(session)
    assert replies == [frozenset()]
    (again,) = await take(postgres_rig.engine)
    assert (again.id, again.attempt) == (claim.id, 2)
    assert await types_told(postgres_rig.engine, claim.id) == [
        "enqueued",
        "started",
        "requeued",
        "started",
    ]


@ends
async def test_an_end_is_logged_behind_a_note_that_it_waited_for(
    postgres_rig: PostgresRig, end: End
) -> None:
    await put(postgres_rig.engine, 0)
    (claim,) = await take(postgres_rig.engine)
    note = ProgressNote(claim.id, claim.token, 50, None, None)
    replies: list[Exchange] = []
    async with while_it_waits(postgres_rig, lambda: end(postgres_rig, claim), replies) as session:
        Statement("note_progress", progress_params([note])).run(session)
    assert [one.rejected for one in replies] == [frozenset()]
    types = await types_told(postgres_rig.engine, claim.id)
    assert types[-2:] == ["progress", "succeeded"]
