"""The product's SQLite engine in memory: its clock, its disk and its copies in the simulation's
hands. Each request is carried out in one step.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

import trio

from musterd.store.connections import ConnectionUse
from musterd.store.queue import Hint
from musterd.store.sqlite.engine import SqliteEngine
from tests.simulation.recording import Recorder

T = TypeVar("T")
EPOCH = 1_893_456_000.0  # where the store's clock stands at the start
BUSY_SECONDS = 2.0
PAGES_MAX = 1_073_741_823

# Each change of a job's state is told as it is made; what is rolled back was not made.
TRIGGERS = """
create trigger simulated_birth after insert on job_rows
begin select note_edge(new.id, null, new.state); end;
create trigger simulated_step after update of state on job_rows when old.state <> new.state
begin select note_edge(new.id, old.state, new.state); end;
create trigger simulated_end after delete on job_rows
begin select note_edge(old.id, old.state, null); end;
"""


class Hands:
    """Carries calls out at once, in the caller's step."""

    use_now = ConnectionUse(idle=1, most=1)

    async def run(self, work: Callable[[], T]) -> T:
        return work()

    def close(self) -> None:
        """There is nothing to give back."""


class Store:
    """`now` is the recorder's clock, `step_seconds` by how much the store's own is ahead of it.
    `timeline` counts the failovers: what was sent before one does not arrive after it.
    """

    def __init__(
        self, now: Callable[[], float], recorder: Recorder, on_hint: Callable[[Hint], None]
    ) -> None:
        self._now, self._recorder, self._on_hint = now, recorder, on_hint
        self.step_seconds = 0.0
        self.timeline = 0
        self.engine: Any = SqliteEngine(
            ":memory:", self.wall_clock, inline=True, busy_timeout_seconds=BUSY_SECONDS
        )
        self._statement = ""  # that runs, while somebody is impatient
        self._edges: list[tuple[int, str | None, str | None]] = []

    def wall_clock(self) -> float:
        return EPOCH + self._now() + self.step_seconds

    async def open(self) -> None:
        await self.engine.open()
        self.engine._runner = Hands()
        self.engine._hints.ring = self._ring
        self.restore(template())
        self.connection.create_function("note_edge", 3, self._note_edge)

    async def close(self) -> None:
        await self.engine.close()

    async def carry_out(self, call: Callable[[], Awaitable[T]]) -> T:
        """In one step. What it did to jobs is in the history when this returns."""
        try:
            done = await call()
        finally:
            edges, self._edges = self._edges, []
        for job, before, after in edges:
            self._recorder.note("edge", job=job, **{"from": before, "to": after})
        return done

    def take_deleted(self) -> list[int]:
        """The jobs that what is just being carried out has deleted."""
        deleted = [job for job, _, after in self._edges if after is None]
        self._edges = [edge for edge in self._edges if edge[2] is not None]
        return deleted

    def _note_edge(self, job: int, before: str | None, after: str | None) -> None:
        self._edges.append((job, before, after))

    def _ring(self, job_id: int | None = None) -> None:
        requests = frozenset[int]() if job_id is None else frozenset((job_id,))
        self._on_hint(Hint(job_id is None, requests))

    # -- what an operator, or the weather, does to it

    @property
    def connection(self) -> Any:
        return self.engine._database.connection

    def raw(self, sql: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return found

    def terms(self) -> dict[str, bytes]:
        return {duty: term for duty, term in self.raw("select duty, term from duties") if term}

    def copy(self) -> sqlite3.Connection:
        return _copy(self.connection)

    def restore(self, copied: sqlite3.Connection) -> None:
        copied.backup(self.connection)

    def fill_disk(self) -> None:
        """From now on it cannot grow."""
        ((pages,),) = self.raw("pragma page_count")
        self.raw(f"pragma max_page_count = {pages}")

    def be_read_only(self) -> None:
        self.raw("pragma query_only = on")

    def be_well(self) -> None:
        self.raw(f"pragma max_page_count = {PAGES_MAX}")
        self.raw("pragma query_only = off")

    def interrupt_after(self, steps: int) -> None:
        """The next statement that takes so many steps is given up, and its transaction with it."""
        self.connection.set_trace_callback(self._begun)
        self.connection.set_progress_handler(self._interrupt, steps)

    def be_patient(self) -> None:
        self.connection.set_progress_handler(None, 0)
        self.connection.set_trace_callback(None)

    def _begun(self, statement: str) -> None:
        self._statement = statement

    def _interrupt(self) -> int:
        # SQLite asks at a statement's very end too: a commit has been made by then.
        if self._statement.lower().startswith(("begin", "commit", "rollback")):
            return 0
        self.be_patient()  # so that it can roll back
        return 1

    def moment(self) -> str:
        return datetime.fromtimestamp(self.wall_clock(), UTC).isoformat()


@cache
def template() -> sqlite3.Connection:
    """An empty store with its schema; made once, for that takes longer than a whole simulation.
    Not to be called first while Trio runs.
    """

    async def make() -> sqlite3.Connection:
        engine: Any = SqliteEngine(
            ":memory:", lambda: EPOCH, inline=True, busy_timeout_seconds=BUSY_SECONDS
        )
        await engine.open()
        await engine.migrate()
        connection = engine._database.connection
        connection.executescript(TRIGGERS)
        copied = _copy(connection)
        await engine.close()
        return copied

    return trio.run(make)


def _copy(connection: sqlite3.Connection) -> sqlite3.Connection:
    copied = sqlite3.connect(":memory:", isolation_level=None)
    connection.backup(copied)
    return copied
