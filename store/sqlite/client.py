"""The client on an embedded store: its own connection, on a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import attrs

from musterd.store.embedded import ring_pipe, sqlite_path
from musterd.store.errors import InputRefused, NoSuchJob, NotAllowed, StoreMisconfigured
from musterd.store.input import JobWanted, new_jobs
from musterd.store.jobs import JobRecord, NewJob
from musterd.store.lifecycle import Action
from musterd.store.report import control_refusal
from musterd.store.sqlite.control import control
from musterd.store.sqlite.database import Database, connect, migrate, refuse_emptied
from musterd.store.sqlite.jobs import enqueue, job
from musterd.store.watching import Pauses, Watch

T = TypeVar("T")
EMBEDDED = (
    "connection: found one, wanted none: an embedded store is a file of its own, which no other"
    " connection may write: enqueue after your commit, or keep the jobs in PostgreSQL"
)
BUSY_SECONDS = 5.0  # how long another process's write is waited for


@attrs.frozen
class _Open:
    database: Database
    thread: ThreadPoolExecutor


class SqliteBackend:
    """See `store.client.Backend`. Brings the schema up to date when it first opens the file, which
    must be there unless it may `create` it.
    """

    def __init__(self, url: str, *, create: bool) -> None:
        self._creates = create
        self._path = str(sqlite_path(url).resolve())
        self._pipe = Path(self._path + ".wake")
        self._open: _Open | None = None
        self._lock = threading.Lock()

    def enqueue(self, job: NewJob) -> int:
        return self.enqueue_many([job])[0]

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[int]:
        made = self._call(lambda database: enqueue(database, jobs))
        ring_pipe(self._pipe, b"")
        return [one.id for one in made]

    def enqueue_pairs(self, pairs: Sequence[JobWanted]) -> list[int]:
        return self.enqueue_many(new_jobs(pairs))

    def through(self, connection: object, jobs: Sequence[NewJob]) -> list[int]:
        raise InputRefused(EMBEDDED)

    async def through_async(self, connection: object, jobs: Sequence[NewJob]) -> list[int]:
        return self.through(connection, jobs)

    def job(self, job_id: int) -> JobRecord | None:
        return self._call(lambda database: job(database, job_id))

    def control(self, action: Action, job_id: int) -> str:
        done = self._call(lambda database: control(database, action, job_id))
        if done.requested:
            ring_pipe(self._pipe, str(job_id).encode())
        elif done.allowed:
            ring_pipe(self._pipe, b"")
        if not done.allowed or done.state_after is None:
            sort = NotAllowed if done.found else NoSuchJob
            raise sort(control_refusal(job_id, action.value, done.state_before))
        return done.state_after.value

    def watch(self, job_id: int) -> Watch:
        return Pauses(partial(self.job, job_id))

    def close(self) -> None:
        with self._lock:
            opened, self._open = self._open, None
        if opened is not None:
            opened.thread.submit(opened.database.connection.close).result()
            opened.thread.shutdown()

    def _call(self, operation: Callable[[Database], T]) -> T:
        with self._lock:
            opened = self._open = self._open or self._connected()
            future = opened.thread.submit(operation, opened.database)
        return future.result()

    def _connected(self) -> _Open:
        thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="musterd-client")
        try:
            return _Open(thread.submit(self._connect).result(), thread)
        except BaseException:
            thread.shutdown()
            raise

    def _connect(self) -> Database:
        if not self._creates and not Path(self._path).exists():
            do = "start the daemon first, correct the path, or make it: Client(url, create=True)"
            raise StoreMisconfigured(f"there is no store at sqlite:///{self._path}: {do}")
        where = f"sqlite:///{self._path}"
        refuse_emptied(Path(self._path), where)
        database = connect(self._path, where, time.time, BUSY_SECONDS)
        try:
            migrate(database)
        except BaseException:
            database.connection.close()
            raise
        return database
