"""The two stores under test, on clocks that stand still until a test moves them.

PostgreSQL reads its own clock. Functions of the same names stand before the server's in the search
path of this one database, and give the moment that is written in a table: the product's statements
run as they are shipped.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from typing import Any, Protocol

import attrs
import psycopg

from musterd.store.engine import Engine
from musterd.store.postgres.claiming import Claimer, Marks
from tests.contract.rigs import SCHEMA, START, PostgresRig, SqliteRig, closing_engine
from tests.support.empty_schema import emptying

CLOCKS = ("clock_timestamp", "statement_timestamp", "transaction_timestamp", "now")
HAND = """
    create schema hand;
    create table hand.clock (at timestamptz not null);
    insert into hand.clock values (to_timestamp(0));
"""
READ_HAND = """
    create function hand.{name}() returns timestamptz language plpgsql volatile as
    $$ begin return (select at from hand.clock); end $$
"""
SEARCH = "hand, pg_catalog, pg_temp"
# The product's functions name their own search path.
FOLLOW = f"""
    do $$ declare one record; begin
        for one in select p.oid::regprocedure as name from pg_proc p
                   where p.pronamespace = '{SCHEMA}'::regnamespace and p.proconfig is not null loop
            execute format('alter function %s set search_path = {SEARCH}', one.name);
        end loop; end $$
"""
STANDS = """
    select job.id, job.state, job.attempt, job.max_attempts, job.forgiven, job.request,
           {run_at}, {finished_at}, {lease}, job.cleared_at is not null, job.stale_at is not null
    from {table} job order by job.id
"""

Row = tuple[Any, ...]


class Store(Protocol):
    @property
    def table(self) -> str: ...

    @property
    def engine(self) -> Engine: ...

    def raw(self, sql: str) -> list[Row]: ...

    def set_clock(self, now: float) -> None: ...

    def begin_anew(self) -> None:
        """As it was migrated."""
        ...

    def faults(self) -> list[Row]:
        """What is wrong with the places of jobs."""
        ...

    def stands(self) -> list[Row]:
        """How each job stands, by id; times in seconds."""
        ...


@attrs.define
class SqliteStore:
    """In memory."""

    rig: SqliteRig
    migrated: sqlite3.Connection
    table: str = "job_rows"

    @property
    def engine(self) -> Engine:
        return self.rig.engine

    def raw(self, sql: str) -> list[Row]:
        return self.rig.raw(sql)

    def set_clock(self, now: float) -> None:
        self.rig.now = now

    @property
    def connection(self) -> sqlite3.Connection:
        database = self.rig.engine._database  # pyright: ignore[reportPrivateUsage] - the only way in
        assert database is not None
        return database.connection

    def faults(self) -> list[Row]:
        return []

    def begin_anew(self) -> None:
        self.migrated.backup(self.connection)
        self.set_clock(START)

    def stands(self) -> list[Row]:
        times = ("job.run_at", "job.finished_at", "job.lease_expires_at")
        run_at, finished_at, lease = (f"{column} / 1e6" for column in times)
        found = self.raw(
            STANDS.format(table=self.table, run_at=run_at, finished_at=finished_at, lease=lease)
        )
        return [(*row[:9], bool(row[9]), bool(row[10])) for row in found]


@attrs.define
class PostgresStore:
    """One database for all examples, emptied before each."""

    rig: PostgresRig
    behind: psycopg.Connection[Any]  # the test's own way in
    empty: bytes = b""
    table: str = "live_jobs"

    @property
    def engine(self) -> Engine:
        return self.rig.engine

    def raw(self, sql: str) -> list[Row]:
        cursor = self.behind.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []

    def set_clock(self, now: float) -> None:
        self.behind.execute("update hand.clock set at = to_timestamp(%s)", [now])

    def stands(self) -> list[Row]:
        times = ("job.run_at", "job.finished_at", "job.lease_expires_at")
        run_at, finished_at, lease = (f"extract(epoch from {column})::float8" for column in times)
        return self.raw(
            STANDS.format(table=self.table, run_at=run_at, finished_at=finished_at, lease=lease)
        )

    def faults(self) -> list[Row]:
        return self.raw(f"select * from {SCHEMA}.check()")

    def begin_anew(self) -> None:
        """As it was migrated. What the engine remembers of earlier claims goes too."""
        self.behind.execute(self.empty)
        self.set_clock(START)
        claimer = self.rig.engine.leases.exchanger.claimer  # its memory
        # Others know of it.
        Claimer.__init__(claimer, claimer.send, claimer.ask, Marks(), claimer.lock_ms)


@asynccontextmanager
async def opened_sqlite() -> AsyncGenerator[SqliteStore]:
    rig = SqliteRig(":memory:")
    async with closing_engine(rig.engine) as engine:
        await engine.open()
        await engine.migrate()
        with closing(sqlite3.connect(":memory:")) as migrated:
            store = SqliteStore(rig, migrated)
            store.connection.backup(migrated)
            yield store


@asynccontextmanager
async def opened_postgres(url: str) -> AsyncGenerator[PostgresStore]:
    """`url`: of an empty database."""
    with psycopg.connect(url, autocommit=True) as first:
        name = first.info.dbname
        first.execute(HAND.encode())
        for clock in CLOCKS:
            first.execute(READ_HAND.format(name=clock).encode())
        first.execute(f'alter database "{name}" set search_path = {SEARCH}'.encode())
    rig = PostgresRig(url)
    async with closing_engine(rig.engine) as engine:
        await engine.open()
        await engine.migrate()
        with psycopg.connect(url, autocommit=True) as behind:
            behind.execute(FOLLOW.encode())
            behind.execute(f"set search_path = {SCHEMA}, {SEARCH}".encode())
            yield PostgresStore(rig, behind, emptying(behind, SCHEMA))
