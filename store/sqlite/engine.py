"""The Engine on SQLite: each call is one short transaction on one connection, on one thread."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import trio

from musterd.store.connections import ConnectionUse
from musterd.store.engine import SchemaState
from musterd.store.errors import StoreMisconfigured, StoreUnavailable
from musterd.store.sqlite.control import SqliteControl
from musterd.store.sqlite.database import (
    MEMORY,
    Database,
    check_file,
    compare,
    connect,
    has_log,
    migrate,
    refuse_emptied,
)
from musterd.store.sqlite.duties import SqliteDuties, SqliteSchedules
from musterd.store.sqlite.errors import sort_file_error
from musterd.store.sqlite.events import SqliteAudit, SqliteEvents
from musterd.store.sqlite.health import SqliteHealth
from musterd.store.sqlite.hints import Hints
from musterd.store.sqlite.history import SqliteHistory
from musterd.store.sqlite.jobs import SqliteJobs
from musterd.store.sqlite.leases import SqliteLeases, expire_all
from musterd.store.sqlite.nodes import SqliteNodes, forget_all
from musterd.store.sqlite.outbox import SqliteOutbox
from musterd.store.sqlite.overview import SqliteOverview
from musterd.store.sqlite.phases import SqlitePhases
from musterd.store.sqlite.queue import SqliteIdleChecks, SqliteQueue
from musterd.store.sqlite.retention import SqliteRetention
from musterd.store.sqlite.runners import InlineRunner, ThreadRunner
from musterd.store.sqlite.scaling_journal import SqliteScalingJournal

P = ParamSpec("P")
T = TypeVar("T")


class SqliteEngine:
    """See `store.engine.Engine`, and for each part its protocol.

    `wall_clock` (seconds since the epoch) is the store's clock; a daemon's leases are measured by
    `boottime` beside it, which nobody sets. `inline`: calls run in the Trio
    task, for tests on a virtual clock; a store in memory always does. `busy_timeout_seconds`
    bounds the wait for another process's write.
    """

    name = "sqlite"

    def __init__(
        self,
        path: str,
        wall_clock: Callable[[], float],
        inline: bool = False,
        *,
        busy_timeout_seconds: float,
        boottime: Callable[[], float] | None = None,
    ) -> None:
        in_memory = path == MEMORY
        # Resolved: the lock beside the file must be the same one whatever name it is called by.
        self._path = path if in_memory else str(Path(path).resolve())
        self.where = f"sqlite:///{self._path}"
        self._wall_clock, self._boottime = wall_clock, boottime
        self._inline = inline or in_memory
        self._busy_timeout_seconds = busy_timeout_seconds
        self._lock = None if in_memory else DaemonLock(Path(self._path + ".lock"), self.where)
        self._hints = Hints(None if in_memory else Path(self._path + ".wake"))
        self._runner: InlineRunner | ThreadRunner | None = None
        self._database: Database | None = None
        self._ended_badly = False  # nobody closed the file who opened it before
        reach = self._call, self._hints
        self.jobs = SqliteJobs(*reach)
        self.leases = SqliteLeases(*reach)
        self.control = SqliteControl(*reach)
        self.queue = SqliteQueue(*reach)
        self.nodes = SqliteNodes(*reach)
        self.phases = SqlitePhases(*reach)
        self.events = SqliteEvents(*reach)
        self.outbox = SqliteOutbox(*reach)
        self.schedules = SqliteSchedules(*reach)
        self.duties = SqliteDuties(*reach)
        self.retention = SqliteRetention(*reach, self._aside)
        self.journal = SqliteScalingJournal(*reach)
        self.idle = SqliteIdleChecks(*reach)
        self.overview = SqliteOverview(*reach)
        self.audit = SqliteAudit(*reach)
        self.health = SqliteHealth(self._path, in_memory, *reach, self._aside)
        self.history = SqliteHistory(*reach)

    @property
    def use_now(self) -> ConnectionUse:
        """Nothing while the file is not open."""
        return ConnectionUse() if self._runner is None else self._runner.use_now

    async def open(self) -> None:
        if self._database is not None:
            await trio.lowlevel.checkpoint()
            return
        runner = InlineRunner() if self._inline else ThreadRunner(self.where)
        try:
            self._database = await runner.run(self._connect)
        except BaseException:
            runner.close()
            raise
        self._runner = runner

    def _connect(self) -> Database:
        if self._path != MEMORY:
            refuse_emptied(Path(self._path), self.where)
            self._ended_badly = has_log(Path(self._path))
        return connect(self._path, self.where, self._wall_clock, self._busy_timeout_seconds)

    async def close(self) -> None:
        database, runner = self._database, self._runner
        self._database = self._runner = None
        if database is not None and runner is not None:
            # No deadline: closing waits for nothing but the calls before it, which are bounded.
            with trio.CancelScope(shield=True), contextlib.suppress(sqlite3.Error):
                await runner.run(database.connection.close)
            runner.close()
        self._hints.close()
        if self._lock is not None:
            self._lock.release()

    async def schema(self) -> SchemaState:
        return await self._call(compare)

    async def migrate(self) -> list[str]:
        return await self._call(migrate)

    async def start_node(self, node: str) -> int:
        """Lets the leases of a dead daemon run out now: the first reap ends them, by the rules.

        So the rules stand in one place, and a job that kills its daemon uses its attempts up and
        fails. A second call changes nothing and returns 0.
        """
        del node  # leases name their node; nothing else has to
        if self._lock is not None:
            if self._lock.held:
                await trio.lowlevel.checkpoint()
                return 0
            self._lock.take()
        try:
            if self._ended_badly:
                await self._call(check_file)
            self._hints.listen()
            if self._boottime is not None:
                await self._call(Database.move_leases, self._boottime)
            await self._call(forget_all)
            return await self._call(expire_all)
        except BaseException:
            self._hints.close()
            if self._lock is not None:
                self._lock.release()
            raise

    async def _aside(self, work: Callable[[], T]) -> T:
        assert self._runner is not None
        return await self._runner.aside(work)

    async def _call(
        self,
        operation: Callable[Concatenate[Database, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        database, runner = self._database, self._runner
        if database is None or runner is None:
            raise StoreUnavailable(f"{self.where}: the store is not open", "unreachable")
        return await runner.run(lambda: operation(database, *args, **kwargs))


class DaemonLock:
    """The file stays when the daemon goes: what counts is the lock on it, which dies with it."""

    def __init__(self, path: Path, where: str) -> None:
        self._path = path
        self._where = where
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def take(self) -> None:
        """Raises `StoreMisconfigured` if another daemon has it, and says which."""
        what = "taking the daemon's lock"
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
        except OSError as error:
            if error.errno == errno.ELOOP:  # who wrote through it would empty another file
                raise StoreMisconfigured(
                    f"{what}: {self._path} is a link, wanted a file of the daemon's own: remove it"
                ) from error
            raise sort_file_error(error, what, str(self._path)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise StoreMisconfigured(
                f"{what}: {self._where}: {holder} runs on this file: a SQLite file has one daemon;"
                " stop the other one, give this one a file of its own, or use PostgreSQL"
            ) from None
        except OSError as error:
            os.close(descriptor)
            raise sort_file_error(error, what, str(self._path)) from error
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
    return f"another daemon (process {text})" if text.isdigit() else "another daemon"
