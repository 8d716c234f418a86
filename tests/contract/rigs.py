"""A store under test: its engine, and the few things a test does behind the engine's back."""

import sqlite3
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from random import Random
from typing import Any, Protocol

import attrs
import psycopg
import pytest
import trio

from musterd.store.engine import Engine
from musterd.store.postgres.engine import PostgresEngine
from musterd.store.postgres.setup import StoreOptions
from musterd.store.sqlite.engine import SqliteEngine

START = 1_800_000_000.0  # where the clock of the SQLite rigs stands
SCHEMA = "musterd"
LEASE_SECONDS = 30.0
CLOSE_SECONDS = 10.0

OPTIONS = StoreOptions(
    pool_size=2,
    connect_timeout_seconds=5,
    statement_timeout_seconds=10,
    lock_timeout_seconds=1,
    idle_transaction_timeout_seconds=10,
    reconnect_base_seconds=0.01,
    reconnect_max_seconds=0.1,
    listen_url="",
)


class Rig(Protocol):
    """`raw` runs SQL that both databases understand; times go by without anyone waiting. `table`:
    where it finds how all jobs stand, those in hand too. `tampered`: a test has put jobs where they
    cannot stand.
    """

    table: str
    tampered: bool

    @property
    def engine(self) -> Engine: ...

    def another(self) -> Engine:
        """A second engine on the same store, not yet open. Whoever asks for it closes it."""
        ...

    def raw(self, sql: str) -> list[tuple[Any, ...]]: ...

    def pass_time(self, seconds: float) -> None: ...

    def expire(self, *ids: int) -> None:
        """Their leases have run out."""
        ...

    def faults(self) -> list[tuple[Any, ...]]:
        """What is wrong with the places of jobs."""
        ...


@attrs.define
class SqliteRig:
    path: str
    now: float = START
    table: str = "job_rows"
    tampered: bool = False
    engine: SqliteEngine = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.engine = self.another()

    def another(self) -> SqliteEngine:
        return SqliteEngine(self.path, lambda: self.now, busy_timeout_seconds=20.0)

    def raw(self, sql: str) -> list[tuple[Any, ...]]:
        if self.path == ":memory:":
            database = self.engine._database  # pyright: ignore[reportPrivateUsage] - the only way in
            assert database is not None
            return database.connection.execute(sql).fetchall()
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            return connection.execute(sql).fetchall()

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def expire(self, *ids: int) -> None:
        for job_id in ids:
            self.raw(f"update job_rows set lease_expires_at = 0 where id = {job_id}")

    def faults(self) -> list[tuple[Any, ...]]:
        return []


@attrs.define
class PostgresRig:
    """`pooled`: the way of the engines, through PgBouncer; without it they connect as tests do."""

    url: str
    pooled: str | None = None
    table: str = "live_jobs"
    tampered: bool = False
    engine: PostgresEngine = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.engine = self.another()

    def another(self) -> PostgresEngine:
        if self.pooled is None:
            return PostgresEngine(self.url, SCHEMA, OPTIONS, Random(1))
        options = attrs.evolve(OPTIONS, listen_url=self.url)
        return PostgresEngine(self.pooled, SCHEMA, options, Random(1))

    def raw(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"set search_path = {SCHEMA}; set jit = off".encode())
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def pass_time(self, seconds: float) -> None:
        """The server's clock cannot be moved, so all that has happened moves into the past."""
        ago = f"- interval '{seconds} s'"
        columns = ["created_at", "run_at", "started_at", "finished_at", "stale_at"]
        moved = ", ".join(f"{column} = {column} {ago}" for column in columns)
        # Without the triggers that see to the places of jobs, which move as they are.
        self.raw(
            "set session_replication_role = replica;"
            f"update job_rows set {moved};"
            f"update ready set run_at = run_at {ago};"
            f"update waiting set run_at = run_at {ago};"
            f"update endings set at = at {ago};"
            f"update leases set claimed_at = claimed_at {ago}, expires_at = expires_at {ago},"
            f" heartbeat_at = heartbeat_at {ago}, started_at = array("
            f"  select moment {ago} from unnest(started_at) with ordinality as each (moment, place)"
            "  order by place)"
        )
        self.raw(f"update dedup_keys set until = until - interval '{seconds} s'")
        for column in ("created_at", "due_at", "claimed_until", "ended_at"):
            self.raw(f"update webhooks set {column} = {column} - interval '{seconds} s'")
        for table in ("event_drafts", "event_log"):
            self.raw(f"update {table} set at = at - interval '{seconds} s'")
        self.raw(
            f"update event_log set ats = array(select moment {ago} from unnest(ats) moment)"
            " where ats is not null"
        )
        for column in ("last_slot", "last_fired_at", "paused_at"):
            self.raw(f"update schedules set {column} = {column} - interval '{seconds} s'")
        for column in ("acquired_at", "heartbeat_at", "expires_at", "last_run_at"):
            self.raw(f"update duties set {column} = {column} - interval '{seconds} s'")
        self.raw(f"update scaling_journal set at = at {ago}, until = until {ago}")
        self.raw(f"update compared_hours set at = at {ago}")
        for column in ("started_at", "heartbeat_at"):
            self.raw(f"update nodes set {column} = {column} - interval '{seconds} s'")

    def expire(self, *ids: int) -> None:
        for job_id in ids:
            self.raw(f"update leases set expires_at = 'epoch' where jobs @> {job_id}::bigint")

    def faults(self) -> list[tuple[Any, ...]]:
        has_schema = f"select to_regclass('{SCHEMA}.leases') is not null"
        return self.raw(f"select * from {SCHEMA}.check()") if self.raw(has_schema)[0][0] else []


def check_violations(rig: PostgresRig, wanted: str, *statements: str) -> None:
    """Each is refused by a check of the schema, which says what is wanted."""
    with psycopg.connect(rig.url, autocommit=True) as connection:
        for statement in statements:
            with pytest.raises(psycopg.errors.CheckViolation, match=wanted):
                connection.execute(statement.encode())


@asynccontextmanager
async def opened(rig: Rig) -> AsyncGenerator[Rig]:
    """A migrated store. When it is closed no thread, file or socket of its may be left."""
    threads, files = own_threads(), open_files()
    async with closing_engine(rig.engine) as engine:
        await engine.open()
        await engine.migrate()
        yield rig
        assert rig.tampered or rig.faults() == []
    assert own_threads() <= threads, "a thread was left"
    assert open_files() <= files, "a file or socket was left open"


@asynccontextmanager
async def closing_engine(engine: Engine) -> AsyncGenerator[Engine]:
    try:
        yield engine
    finally:
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await engine.close()


def own_threads() -> set[threading.Thread]:
    """All but those that Trio keeps for a while to use them again."""
    return {one for one in threading.enumerate() if not one.name.startswith("Trio thread")}


def open_files() -> set[str]:
    """What is open in this process, as `number -> what`."""
    found: set[str] = set()
    for descriptor in Path("/dev/fd").iterdir():
        try:
            found.add(f"{descriptor.name} -> {descriptor.readlink()}")
        except OSError:
            continue  # the one that listed the folder
    return found
