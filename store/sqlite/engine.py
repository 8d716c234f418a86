"""The Engine on SQLite: each call is one short transaction on one connection, on one thread."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from uuid import UUID

import trio

from musterd.store.connections import ConnectionUse
from musterd.store.engine import ReapRequest, SchemaState
from musterd.store.errors import StoreUnavailable
from musterd.store.job import (
    Action,
    Claim,
    ClaimRequest,
    ControlResult,
    Counts,
    Enqueued,
    Exchange,
    Hint,
    Hold,
    JobFilter,
    JobRecord,
    NewJob,
    ProgressNote,
    Reaped,
    Renewal,
    Settlement,
)
from musterd.store.nodes import Beat, NodeRecord
from musterd.store.phases import KindRule
from musterd.store.queue_view import QueueView
from musterd.store.selection import Look, Selection, Step
from musterd.store.sqlite import (
    controlling,
    migrating,
    reading,
    reaping,
    selecting,
    standing,
    writing,
)
from musterd.store.sqlite.audit import SqliteAudit
from musterd.store.sqlite.board import SqliteBoard
from musterd.store.sqlite.daemon_lock import DaemonLock
from musterd.store.sqlite.database import MEMORY, Database, connect
from musterd.store.sqlite.duties import SqliteDuties
from musterd.store.sqlite.events import SqliteEvents
from musterd.store.sqlite.hints import Hints
from musterd.store.sqlite.outbox import SqliteOutbox
from musterd.store.sqlite.outlook import SqliteOutlooks
from musterd.store.sqlite.phases import SqlitePhases
from musterd.store.sqlite.retention import SqliteRetention
from musterd.store.sqlite.runner import InlineRunner, Runner, ThreadRunner
from musterd.store.sqlite.schedules import SqliteSchedules
from musterd.store.sqlite.vitals import SqliteVitals
from musterd.store.standing import Standing
from musterd.store.target import TargetView

P = ParamSpec("P")
T = TypeVar("T")


class SqliteEngine:
    """See `store.engine.Engine` for what each method promises.

    `wall_clock` (seconds since the epoch) is the store's clock. `inline`: calls run in the Trio
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
    ) -> None:
        in_memory = path == MEMORY
        # Resolved: the lock beside the file must be the same one whatever name it is called by.
        self._path = path if in_memory else str(Path(path).resolve())
        self.where = f"sqlite:///{self._path}"
        self._wall_clock = wall_clock
        self._inline = inline or in_memory
        self._busy_timeout_seconds = busy_timeout_seconds
        self._lock = None if in_memory else DaemonLock(Path(self._path + ".lock"), self.where)
        self._hints = Hints(None if in_memory else Path(self._path + ".wake"))
        self._runner: Runner | None = None
        self._database: Database | None = None
        self.audit = SqliteAudit(self._call)
        self.board = SqliteBoard(self._call)
        self.events = SqliteEvents(self._call)
        self.phases = SqlitePhases(self._call)
        self.outbox = SqliteOutbox(self._call)
        self.outlooks = SqliteOutlooks()
        self.retention = SqliteRetention(self._call)
        self.duties = SqliteDuties(self._call)
        self.schedules = SqliteSchedules(self._call, self._hints)
        self.vitals = SqliteVitals(self._call, self._path, in_memory)

    @property
    def use_now(self) -> ConnectionUse:
        """Nothing while the file is not open."""
        return ConnectionUse() if self._runner is None else self._runner.use_now

    async def open(self) -> None:
        if self._database is not None:
            await trio.lowlevel.checkpoint()
            return
        runner: Runner = InlineRunner() if self._inline else ThreadRunner()
        try:
            self._database = await runner.run(self._connect)
        except BaseException:
            runner.close()
            raise
        self._runner = runner

    def _connect(self) -> Database:
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
        return await self._call(migrating.compare)

    async def migrate(self) -> list[str]:
        return await self._call(migrating.migrate)

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
            self._hints.listen()
            await self._call(standing.forget_all)
            return await self._call(reaping.expire_all)
        except BaseException:
            self._hints.close()
            if self._lock is not None:
                self._lock.release()
            raise

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        return [one.id for one in await self.enqueue_keyed(jobs)]

    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        made = await self._call(writing.enqueue, jobs)
        self._hints.ring()
        return made

    async def exchange(
        self, settlements: Sequence[Settlement], claim: ClaimRequest | None, now_local: float
    ) -> Exchange:
        exchange, leaves_work = await self._call(writing.exchange, settlements, claim, now_local)
        if leaves_work:
            self._hints.ring()
        return exchange

    async def claims_under(self, token: UUID) -> list[Claim]:
        return await self._call(reading.claims_under, token)

    async def settled_already(self, settlements: Sequence[Settlement]) -> frozenset[int]:
        return await self._call(reading.settled_already, settlements)

    async def renew(self, holds: Sequence[Hold], lease_seconds: float, now_local: float) -> Renewal:
        return await self._call(writing.renew, holds, lease_seconds, now_local)

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        return await self._call(writing.note_progress, notes)

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        return await self._call(reaping.reap, request)

    async def control(self, action: Action, job_id: int) -> ControlResult:
        done = await self._call(controlling.control, action, job_id)
        if done.requested:
            self._hints.ring(job_id)
        elif done.allowed:
            self._hints.ring()
        return done

    async def select_jobs(self, which: Selection, after_id: int, span: int) -> Look:
        return await self._call(selecting.select_jobs, which, after_id, span)

    async def control_many(self, action: Action, ids: Sequence[int], which: Selection) -> Step:
        step, freed = await self._call(selecting.control_many, action, ids, which)
        for job_id in step.requested:
            self._hints.ring(job_id)
        if freed:
            self._hints.ring()
        return step

    async def observe(
        self, limit: int, me: UUID | None = None, leased_max: int | None = None
    ) -> QueueView:
        return await self._call(reading.observe, limit, me, leased_max)

    async def next_due_seconds(self) -> float | None:
        return await self._call(reading.next_due_seconds)

    async def counts(self) -> Counts:
        return await self._call(reading.counts)

    async def job(self, job_id: int) -> JobRecord | None:
        return await self._call(reading.job, job_id)

    async def jobs(self, which: JobFilter) -> list[JobRecord]:
        return await self._call(reading.jobs, which)

    async def target(self, name: str) -> TargetView | None:
        return await self._call(reading.target, name)

    async def pause_queue(self, by: str) -> bool:
        return await self._call(writing.pause_queue, by)

    async def resume_queue(self) -> bool:
        resumed = await self._call(writing.resume_queue)
        self._hints.ring()
        return resumed

    async def beat(self, beat: Beat) -> None:
        await self._call(standing.beat, beat)

    async def leave(self, node_id: UUID) -> None:
        await self._call(standing.leave, node_id)

    async def nodes(self) -> list[NodeRecord]:
        return await self._call(standing.nodes)

    async def tell_kinds(self, rules: Mapping[str, KindRule]) -> None:
        await self._call(writing.tell_kinds, rules)

    async def standing(self, job_id: int) -> Standing | None:
        return await self._call(standing.standing, job_id)

    async def wait_for_hint(self) -> Hint:
        return await self._hints.wait()

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
