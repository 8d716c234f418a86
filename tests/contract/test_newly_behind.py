"""Jobs that are made behind another one of their target are set behind it at once, on PostgreSQL,
and the transaction that makes them holds nobody up.
"""

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
import pytest

from musterd.store.leases import Claim
from musterd.store.lifecycle import Action, JobState
from tests.contract.job_tools import ending, put, settle
from tests.contract.rigs import SCHEMA, PostgresRig
from tests.contract.sessions import Connection
from tests.contract.target_tools import check, one_of, put_target, take_all

MANY = 300
MADE = f"""insert into {SCHEMA}.jobs (kind, target, priority, run_at)
    select 'k', 't', 5, coalesce(%s, now()) from generate_series(1, {MANY})"""
NEVER_WAITS = "set lock_timeout = '2s'"


@pytest.fixture
def rig(postgres_rig: PostgresRig) -> PostgresRig:
    return postgres_rig


@contextmanager
def a_program(rig: PostgresRig, isolation: str = "read committed") -> Generator[Connection]:
    """Its transaction, which is committed by the end of the block."""
    with psycopg.connect(rig.url) as session:
        session.execute(NEVER_WAITS.encode())
        session.execute(f"set transaction isolation level {isolation}".encode())
        yield session


def make(session: Connection, run_at: str | None = None) -> None:
    session.execute(MADE.encode(), [run_at])


def ready(rig: PostgresRig) -> int:
    return int(rig.raw("select count(*) from ready where target is not null")[0][0])


async def held(rig: PostgresRig) -> Claim:
    await put_target(rig.engine, 9)
    return await one_of(rig)


async def test_they_are_never_in_a_claims_way(rig: PostgresRig) -> None:
    claim = await held(rig)
    with a_program(rig) as session:
        make(session)
    check(rig)
    assert ready(rig) == 0
    (other,) = await put(rig.engine, 0)
    assert [one.id for one in await take_all(rig.engine)] == [other]
    (following,) = await take_all(rig.engine, 9, [ending(claim)])
    assert following.id == claim.id + 1
    check(rig)


async def test_nor_behind_one_that_has_failed(rig: PostgresRig) -> None:
    claim = await held(rig)
    await settle(rig.engine, ending(claim, JobState.FAILED))
    with a_program(rig) as session:
        make(session)
    assert ready(rig) == 0
    await rig.engine.control.apply(Action.CLEAR, claim.id)
    check(rig)
    assert (await one_of(rig)).id == claim.id + 1


async def test_what_ends_meanwhile_waits_for_nobody_and_leaves_nobody_behind(
    rig: PostgresRig,
) -> None:
    claim = await held(rig)
    with a_program(rig) as session:
        make(session)
        await settle(rig.engine, ending(claim))
        assert rig.raw("select count(*) from target_holders") == [(0,)]
    check(rig)
    assert ready(rig) == MANY
    assert (await one_of(rig)).id == claim.id + 1
    check(rig)


async def test_a_commit_waits_for_nobody_who_ends_the_one_before(rig: PostgresRig) -> None:
    await held(rig)
    with psycopg.connect(rig.url) as ender:
        ender.execute(f"select from {SCHEMA}.target_holders for update".encode())
        with a_program(rig) as session:
            make(session)
    assert ready(rig) == MANY
    assert await take_all(rig.engine) == []
    check(rig)


@pytest.mark.parametrize("before", [True, False])
async def test_whoever_is_next_at_the_commit_may_be_less_urgent(
    rig: PostgresRig, before: bool
) -> None:
    """It is next before the others are made, and not yet claimed, or becomes so afterwards."""
    claim = await held(rig)
    (meek,) = await put_target(rig.engine, 1)
    assert await take_all(rig.engine) == []
    with a_program(rig) as session:
        if before:
            await settle(rig.engine, ending(claim))
        make(session)
        if not before:
            await settle(rig.engine, ending(claim))
    check(rig)
    assert (await one_of(rig)).id > meek
    check(rig)


async def test_those_that_are_due_later_are_left_where_claims_look(
    rig: PostgresRig,
) -> None:
    claim = await held(rig)
    with a_program(rig) as session:
        make(session, run_at="9999-01-01")
    assert ready(rig) == MANY
    await settle(rig.engine, ending(claim))
    check(rig)
    assert await take_all(rig.engine) == []


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
async def test_a_program_with_an_older_snapshot_may_make_jobs_too(
    rig: PostgresRig, isolation: str
) -> None:
    claim = await held(rig)
    with a_program(rig, isolation) as session:
        session.execute(b"select 1")
        await settle(rig.engine, ending(claim))
        make(session)
    check(rig)
    assert (await one_of(rig)).id == claim.id + 1


async def test_a_program_that_acts_on_what_it_sets_behind(rig: PostgresRig) -> None:
    """Within one transaction: the one before is canceled, the first one behind is put off."""
    await put_target(rig.engine, 9)
    await rig.engine.control.apply(Action.PAUSE, 1)
    with a_program(rig) as session:
        make(session)
        session.execute(f"select {SCHEMA}.cancel(1), {SCHEMA}.pause(2)".encode())
    check(rig)
    assert await take_all(rig.engine) == []
    await rig.engine.control.apply(Action.RESUME, 2)
    check(rig)
    await one_of(rig)
