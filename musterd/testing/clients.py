"""What a program enqueues, in its tests: looked at, run at once, or run when the test says so."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, overload

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.settings import Settings
from musterd.store.client_base import ClientBase
from musterd.store.job_log import plain
from musterd.store.jobs import JobRecord, NewJob
from musterd.store.lifecycle import JobState
from musterd.testing.due import GivenCatalog, settings_and_kinds, work_until_dry
from musterd.testing.memory import FrozenClock, MemoryBackend

DRAIN_SECONDS = 60.0  # of real time: a job that snoozes for no time at all would never end
SHOWN_MAX = 20


class HandlerFailed(AssertionError):
    """A job of `inline` has failed; the message is its log, with the traceback."""


@attrs.frozen
class RecordedJob:
    """A job as it stands now. `connection`: the caller's own that it was enqueued with, if any."""

    id: int
    tenant: str
    kind: str
    payload: Any
    state: str
    priority: int
    run_at: datetime
    target: str | None
    dedup_key: str | None
    max_attempts: int | None
    webhook: str | None
    attempt: int
    result: Any
    error: Mapping[str, str] | None
    log: str
    connection: Any = attrs.field(default=None, repr=False)


class RecordedJobs(Sequence[RecordedJob]):
    """All jobs that a client has enqueued since the block began, oldest first."""

    def __init__(self, catalog: GivenCatalog, *, run_at_once: bool) -> None:
        self._catalog, self._run_at_once = catalog, run_at_once
        self._clock = FrozenClock()
        self._backends: dict[str, MemoryBackend] = {}
        # To look at jobs no kinds are needed: they are read when the first job is to be run.
        self._read: tuple[Settings, Catalog] | None = None
        self._plain = settings_and_kinds(())[0]

    @property
    def now(self) -> datetime:
        """The time in the store. It stands still until `drain` moves it."""
        return datetime.fromtimestamp(self._clock.now, UTC)

    def of(self, kind: str, **wanted: Any) -> list[RecordedJob]:
        """Those of this kind whose fields are these: `of("receipt", payload={"order": 17})`."""
        return [
            one
            for one in self
            if one.kind == kind and all(getattr(one, name) == wanted[name] for name in wanted)
        ]

    def one(self, kind: str, **wanted: Any) -> RecordedJob:
        """The only one of these. Raises `AssertionError`, which lists what was enqueued."""
        found = self.of(kind, **wanted)
        if len(found) != 1:
            raise AssertionError(self._said(f"wanted one job, found {len(found)}", kind, wanted))
        return found[0]

    def none(self, kind: str, **wanted: Any) -> None:
        """Raises `AssertionError` if there is one of these."""
        found = self.of(kind, **wanted)
        if found:
            raise AssertionError(self._said(f"wanted no job, found {len(found)}", kind, wanted))

    def drain(self, until: timedelta | datetime | None = None) -> list[RecordedJob]:
        """Runs what is due, one job after the other, and gives the jobs that were run. With
        `until` the clock of the store goes on to then, from one due time to the next: delayed jobs
        and retries run when they are due. What the jobs enqueue runs too.
        """
        before = {(one.tenant, one.id): one.attempt for one in self}
        now = self._clock.now
        end = until.timestamp() if isinstance(until, datetime) else now
        end = now + until.total_seconds() if isinstance(until, timedelta) else end
        if end < now:
            raise ValueError(f"until: found {until}, which is before {self.now}, wanted later")
        while True:
            for backend in list(self._backends.values()):
                backend.run(self._dry, backend)
            due = self._next_due()
            if due is None or due > end:
                break
            self._clock.now = max(self._clock.now, due)
        self._clock.now = max(self._clock.now, end)
        return [one for one in self if before.get((one.tenant, one.id), 0) != one.attempt]

    def backend_of(self, tenant: str) -> MemoryBackend:
        """What the client works on instead of its store."""
        if tenant not in self._backends:
            sort = _RunAtOnce if self._run_at_once else MemoryBackend
            self._backends[tenant] = sort(tenant, self._clock, self._plain)
            if isinstance(made := self._backends[tenant], _RunAtOnce):
                made.subscribe(self)
        return self._backends[tenant]

    def __len__(self) -> int:
        return sum(len(backend.records()) for backend in self._backends.values())

    @overload
    def __getitem__(self, index: int) -> RecordedJob: ...
    @overload
    def __getitem__(self, index: slice) -> list[RecordedJob]: ...
    def __getitem__(self, index: int | slice) -> RecordedJob | list[RecordedJob]:
        return list(self)[index]

    def __iter__(self) -> Iterator[RecordedJob]:
        found = [
            _recorded(record, backend)
            for backend in self._backends.values()
            for record in backend.records()
        ]
        return iter(found)

    def close(self) -> None:
        for backend in self._backends.values():
            backend.run(backend.engine.close)

    async def _dry(self, backend: MemoryBackend) -> None:
        if not (await backend.engine.queue.observe(1)).due:
            return
        if self._read is None:
            self._read = settings_and_kinds(self._catalog)
        with trio.move_on_after(DRAIN_SECONDS) as limit:
            await work_until_dry(backend.engine, *self._read)
        if limit.cancelled_caught:
            raise AssertionError(f"drain: jobs are still due after {DRAIN_SECONDS:g} s")

    def _next_due(self) -> float | None:
        found = [each.run(each.engine.queue.next_due_seconds) for each in self._backends.values()]
        return min((self._clock.now + one for one in found if one is not None), default=None)

    def _said(self, what: str, kind: str, wanted: Mapping[str, Any]) -> str:
        asked = ", ".join([repr(kind), *(f"{name}={value!r}" for name, value in wanted.items())])
        listed = [f"  {one.id} {one.kind} {one.payload!r} {one.state}" for one in self]
        more = [f"  and {len(listed) - SHOWN_MAX} more"] if len(listed) > SHOWN_MAX else []
        return "\n".join([f"{what}: {asked}; enqueued:", *listed[:SHOWN_MAX], *more])


class _RunAtOnce(MemoryBackend):
    """Runs what is due as soon as something was enqueued, but not within a job that runs."""

    _jobs: RecordedJobs | None = None
    _is_running = False

    def subscribe(self, jobs: RecordedJobs) -> None:
        self._jobs = jobs

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[int]:
        made = super().enqueue_many(jobs)
        if self._jobs is None or self._is_running:
            return made
        self._is_running = True
        try:
            ran = self._jobs.drain()
        finally:
            self._is_running = False
        for one in ran:
            if one.state == JobState.FAILED:
                said = (one.error or {}).get("message", "")
                raise HandlerFailed(f"job {one.id} of kind {one.kind} failed: {said}\n{one.log}")
        return made


@contextmanager
def recording(client: ClientBase, catalog: GivenCatalog = None) -> Generator[RecordedJobs]:
    """Within the block the client's jobs go into a store in memory, and nowhere else: its own store
    is neither opened nor asked, and a `connection=` is noted and not used. `catalog` (a file, a
    folder, or kinds; None = what the verbs find) is read if jobs are to be run, by `drain`.
    """
    with _replaced(client, RecordedJobs(catalog, run_at_once=False)) as jobs:
        yield jobs


@contextmanager
def inline(client: ClientBase, catalog: GivenCatalog = None) -> Generator[RecordedJobs]:
    """As `recording`, and each job that is due runs before `enqueue` returns. Raises
    `HandlerFailed` there if it fails; one that is to be retried waits for `drain`.
    """
    with _replaced(client, RecordedJobs(catalog, run_at_once=True)) as jobs:
        yield jobs


@contextmanager
def _replaced(client: ClientBase, jobs: RecordedJobs) -> Generator[RecordedJobs]:
    try:
        with client.with_backend(jobs.backend_of):
            yield jobs
    finally:
        jobs.close()


def _recorded(record: JobRecord, backend: MemoryBackend) -> RecordedJob:
    result, error = (
        None if text is None else json.loads(text) for text in (record.result, record.error)
    )
    return RecordedJob(
        id=record.id,
        tenant=backend.tenant,
        kind=record.kind,
        payload=json.loads(record.payload),
        state=record.state.value,
        priority=record.priority,
        run_at=record.run_at,
        target=record.target,
        dedup_key=record.dedup_key,
        max_attempts=record.max_attempts,
        webhook=None if record.webhook is None else record.webhook.url,
        attempt=record.attempt,
        result=result,
        error=error,
        log=plain(record.log),
        connection=backend.connections.get(record.id),
    )
