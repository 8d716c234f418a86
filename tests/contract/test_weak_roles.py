"""Roles that may do little cannot keep others from their work: what a lock of theirs could stop is
guarded by locks that only the store's owner and its daemons may take.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import trio

from musterd.store.jobs import NewJob
from musterd.store.leases import ClaimRequest
from musterd.store.postgres.migrating import apply_roles, role_names
from tests.contract.rigs import LEASE_SECONDS, SCHEMA, PostgresRig, closing_engine, opened
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
    request = ClaimRequest(uuid4(), "north", (1, 2), 0, LEASE_SECONDS, (("narrow", 1),))
    with keeper_of_advisory_locks(postgres_rig), trio.fail_after(SECONDS):
        found = await postgres_rig.engine.leases.exchange([], request, 0.0)
    assert len(found.claims) == 1


async def test_nodes_are_told_of_work_whoever_keeps_advisory_locks(
    postgres_rig: PostgresRig,
) -> None:
    with keeper_of_advisory_locks(postgres_rig):
        async with listening(postgres_rig.engine) as listener:
            await enqueue_and_hear(listener, postgres_rig.engine)


@pytest.mark.parametrize("duty", ["enqueue", "read"])
async def test_what_guards_the_work_cannot_be_locked(postgres_rig: PostgresRig, duty: str) -> None:
    apply_roles(postgres_rig.url, SCHEMA)
    with logged_in(postgres_rig, role_names(SCHEMA)[duty]) as weak:
        for table in OWN:
            for mode in ("access share", "share update exclusive"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege), weak.transaction():
                    weak.execute(f"lock table {SCHEMA}.{table} in {mode} mode".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            weak.execute(f"select name from {SCHEMA}.hint_channel".encode())
        for call in ("take_turn()", "hint('')", "lock_job(1)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                weak.execute(f"select {SCHEMA}.{call}".encode())


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
