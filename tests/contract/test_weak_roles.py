"""Roles that may do little cannot keep others from their work: what a lock of theirs could stop is
guarded by locks that only the store's owner and its daemons may take.
"""

from __future__ import annotations

import os
import signal
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from random import Random
from typing import Any, cast
from uuid import uuid4

import attrs
import psycopg
import pytest
import trio

from musterd.store.errors import OutcomeUnknown, StoreUnavailable
from musterd.store.jobs import NewJob
from musterd.store.leases import ClaimRequest, Ends, Exchange, ProgressNote, Settlement, Successes
from musterd.store.lifecycle import JobState
from musterd.store.phases import PhaseStart
from musterd.store.postgres.engine import PostgresEngine
from musterd.store.postgres.migrating import apply_roles, role_names
from tests.contract.job_tools import ending, put, state_of, take, visit
from tests.contract.rigs import LEASE_SECONDS, OPTIONS, SCHEMA, PostgresRig, closing_engine, opened
from tests.contract.target_tools import put_target, take_all
from tests.contract.test_hints import enqueue_and_hear, listening
from tests.fix_postgres import FreshDatabase

SECONDS = 5
ADVISORY = range(1836413796, 1836413800)  # what musterd's own advisory locks once began with
OWN = ("claim_turn", "hint_channel", "schema_migrations", "target_holders", "leases", "job_rows")


@contextmanager
def logged_in(rig: PostgresRig, *granted: str) -> Generator[psycopg.Connection[Any]]:
    """As a role that may connect, and do what these roles may."""
    name = f"weak_{zlib.crc32(rig.url.encode()):x}"
    rig.raw(f"create role {name} login password 'secret'")
    for role in granted:
        rig.raw(f'grant "{role}" to {name}')
    try:
        with psycopg.connect(rig.url, user=name, password="secret", autocommit=True) as conn:
            yield conn
    finally:
        rig.raw(f"drop owned by {name}; drop role {name}")


@contextmanager
def keeper_of_advisory_locks(rig: PostgresRig) -> Generator[None]:
    with logged_in(rig) as stranger:
        for first in ADVISORY:
            stranger.execute("select pg_advisory_lock(%s, hashtext(%s))", (first, SCHEMA))
        yield


async def test_a_store_is_migrated_whoever_keeps_advisory_locks(
    fresh_database: FreshDatabase,
) -> None:
    rig = PostgresRig(fresh_database())
    with keeper_of_advisory_locks(rig), trio.fail_after(SECONDS):
        async with opened(rig):
            assert (await rig.engine.schema()).found > 0


async def test_claims_with_limits_go_on_whoever_keeps_advisory_locks(
    postgres_rig: PostgresRig,
) -> None:
    await postgres_rig.engine.jobs.enqueue([NewJob("narrow")] * 3)
    with keeper_of_advisory_locks(postgres_rig), trio.fail_after(SECONDS):
        found = await visit(postgres_rig.engine, 2, caps=(("narrow", 1),))
    assert len(found.claims) == 1


async def test_nodes_are_told_of_work_whoever_keeps_advisory_locks(
    postgres_rig: PostgresRig,
) -> None:
    with keeper_of_advisory_locks(postgres_rig):
        async with listening(postgres_rig.engine) as listener:
            await enqueue_and_hear(listener, postgres_rig.engine)


LOCKED = [
    f"lock table {{schema}}.{table} in {mode} mode"
    for table in OWN
    for mode in ("access share", "share update exclusive")
]
CALLED = ["select name from {schema}.hint_channel"] + [
    f"select {{schema}}.{call}" for call in ("take_turn()", "hint('')", "lock_job(1)")
]


@pytest.mark.parametrize("duty", ["enqueue", "read"])
async def test_what_guards_the_work_cannot_be_locked(  # noqa: ASYNC124 - its fixture waits
    postgres_rig: PostgresRig, duty: str
) -> None:
    apply_roles(postgres_rig.url, SCHEMA)
    with logged_in(postgres_rig, role_names(SCHEMA)[duty]) as weak:
        for text in LOCKED + CALLED:
            with pytest.raises(psycopg.errors.InsufficientPrivilege), weak.transaction():
                weak.execute(text.format(schema=SCHEMA).encode())


async def test_the_channel_of_a_store_is_its_own(postgres_rig: PostgresRig) -> None:
    """It survives a migration, and no other store has it, nor does what all may read say it."""
    engine, raw = postgres_rig.engine, postgres_rig.raw
    ((name,),) = raw("select name from hint_channel")
    assert await engine.migrate() == []
    assert raw("select name from hint_channel") == [(name,)]
    assert raw(f"select count(*) from pg_proc where prosrc like '%{name}%'") == [(0,)]
    raw(f"drop schema {SCHEMA} cascade")
    async with closing_engine(postgres_rig.another()) as other:
        await other.open()
        await other.migrate()
        assert raw("select name from hint_channel") != [(name,)]


@contextmanager
def holding(rig: PostgresRig, job_id: int) -> Generator[None]:
    """A role that may act on jobs has acted on one, and leaves its transaction open."""
    apply_roles(rig.url, SCHEMA)
    with logged_in(rig, role_names(SCHEMA)["enqueue"]) as weak, weak.transaction() as open_one:
        weak.execute(f"select {SCHEMA}.cancel(%s)".encode(), (job_id,))
        yield
        raise psycopg.Rollback(open_one)


async def end(rig: PostgresRig, *ends: Settlement, workers: int = 0) -> Exchange:
    """As a node ends them: plain successes by themselves. It claims, too."""
    plain = [one for one in ends if one.state is JobState.SUCCEEDED]
    others = [one for one in ends if one.state is not JobState.SUCCEEDED]
    moments = [one.started_epoch or 0.0 for one in plain]
    successes = Successes.of(
        cast(Any, plain), [1] * len(plain), moments, moments, [None] * len(plain), moments
    )
    request = ClaimRequest(uuid4(), "north", tuple(range(1, workers + 1)), 0, LEASE_SECONDS)
    with trio.fail_after(SECONDS):
        return await rig.engine.leases.exchange(Ends(others, successes), request)


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.PAUSED])
async def test_what_is_held_is_settled_later_and_the_rest_now(
    postgres_rig: PostgresRig, state: JobState
) -> None:
    rig = postgres_rig
    await put(rig.engine, *([0] * 6))
    claims = await take(rig.engine, workers=4)
    ends = [ending(one, state)._replace(kind=one.kind) for one in claims]
    with holding(rig, claims[1].id):
        for workers in (1, 0):  # the second one knows beforehand
            done = await end(rig, *ends[workers * 2 : workers * 2 + 2], ends[1], workers=workers)
            assert done.held_up == {claims[1].id}
            assert done.rejected == frozenset()
            assert len(done.claims) == workers
        assert await state_of(rig.engine, claims[1].id) is JobState.RUNNING
    done = await end(rig, ends[1])
    assert done._replace(now_epoch=0.0) == Exchange(frozenset(), [])
    found = {await state_of(rig.engine, one.id) for one in claims}
    assert found == {state}


async def test_ends_do_not_wait_for_a_claim_that_waits_for_others(
    postgres_rig: PostgresRig,
) -> None:
    """A node that was frozen in the midst of a claim with limits keeps the turn of all others."""
    rig = postgres_rig
    await put(rig.engine, 0, 0)
    (claim,) = await take(rig.engine)
    request = ClaimRequest(uuid4(), "north", (1,), 0, LEASE_SECONDS, caps=(("report", 5),))
    with psycopg.connect(rig.url) as frozen:
        frozen.execute("select musterd.take_turn()")
        done = await rig.engine.leases.exchange(Ends([ending(claim)], Successes()), request)
        assert (done.rejected, done.held_up, done.claims) == (frozenset(), frozenset(), [])
        assert done.parked == 1
        assert await state_of(rig.engine, claim.id) is JobState.SUCCEEDED
        with pytest.raises(StoreUnavailable):
            await rig.engine.leases.exchange(Ends(), request)
    assert len((await rig.engine.leases.exchange(Ends(), request)).claims) == 1


async def test_a_target_that_is_held_holds_up_its_own_job(postgres_rig: PostgresRig) -> None:
    rig = postgres_rig
    first, behind = await put_target(rig.engine, 0, 0)
    (plain,) = await put(rig.engine, 0)
    held, other = await take_all(rig.engine)
    assert (held.id, other.id) == (first, plain)
    with holding(rig, behind):
        done = await end(rig, ending(held), ending(other))
        assert done.held_up == {first}
        assert not done.rejected
    assert (await end(rig, ending(held), workers=1)).claims[0].id == behind


async def test_progress_and_phases_of_the_others_are_written(postgres_rig: PostgresRig) -> None:
    rig = postgres_rig
    await put(rig.engine, 0, 0)
    claims = await take(rig.engine, workers=2)
    notes = [ProgressNote(one.id, one.token, 50.0, "half", None) for one in claims]
    starts = [PhaseStart(one.id, one.token, 1, one.claimed_epoch, ("a", "b")) for one in claims]
    with holding(rig, claims[0].id), trio.fail_after(SECONDS):
        for percent in (50.0, 60.0):
            with pytest.raises(StoreUnavailable, match=rf"jobs \[{claims[0].id}\]"):
                await rig.engine.leases.note_progress(
                    [one._replace(percent=percent) for one in notes]
                )
            ((noted,),) = rig.raw(f"select progress from job_rows where id = {claims[1].id}")
            assert noted == percent
        with pytest.raises(StoreUnavailable):
            await rig.engine.phases.begin(starts)
        assert await rig.engine.phases.begin(starts[1:]) == {claims[1].id: {}}
    assert len(await rig.engine.leases.note_progress(notes)) == 2


@contextmanager
def frozen_servers(rig: PostgresRig) -> Generator[None]:
    """Those that serve the store's connections answer nothing meanwhile."""
    clients = "backend_type = 'client backend' and pid <> pg_backend_pid()"
    asked = f"select pid from pg_stat_activity where datname = current_database() and {clients}"
    pids = [pid for (pid,) in rig.raw(asked)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


async def test_a_server_that_stays_silent_about_what_is_held_is_given_up(
    postgres_rig: PostgresRig,
) -> None:
    rig = postgres_rig
    await put(rig.engine, 0)
    claims = await take(rig.engine)
    notes = [ProgressNote(one.id, one.token, 50.0, "half", None) for one in claims]
    options = attrs.evolve(OPTIONS, statement_timeout_seconds=0.5)
    async with closing_engine(PostgresEngine(rig.url, SCHEMA, options, Random(1))) as impatient:
        await impatient.open()
        with holding(rig, claims[0].id):
            with pytest.raises(StoreUnavailable):
                await impatient.leases.note_progress(notes)
            with frozen_servers(rig), trio.fail_after(SECONDS), pytest.raises(OutcomeUnknown):
                await impatient.leases.note_progress(notes)
