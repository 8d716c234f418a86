"""A store in memory in place of a client's own, and a clock that stands until it is moved."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import attrs
import trio

from musterd.config.settings import Settings
from musterd.store.control import ControlResult
from musterd.store.errors import NoSuchJob, NotAllowed
from musterd.store.event_loops import loop_here
from musterd.store.input import JobWanted, check_payload, new_jobs
from musterd.store.jobs import JobFilter, JobRecord, NewJob
from musterd.store.lifecycle import Action
from musterd.store.report import control_refusal
from musterd.store.sqlite.engine import SqliteEngine
from musterd.store.watching import Pauses, Watch
from musterd.testing.running import payload_limits

T = TypeVar("T")
JOBS_MAX = 1_000_000


@attrs.define
class FrozenClock:
    """Seconds since the epoch, as they were when the test began, until the test moves them."""

    now: float = attrs.field(factory=time.time)

    def __call__(self) -> float:
        return self.now


class MemoryBackend:
    """See `store.client_base.Backend`. The engine is the embedded one, so keys, targets, holds and
    actions are what they are there. `through`: what connections were given for which jobs.
    """

    def __init__(self, tenant: str, clock: FrozenClock, settings: Settings) -> None:
        self.tenant = tenant
        self.engine = SqliteEngine(":memory:", clock, busy_timeout_seconds=1.0)
        self.connections: dict[int, Any] = {}
        self._limits = payload_limits(settings)
        self.run(self.engine.open)
        self.run(self.engine.migrate)

    def enqueue(self, job: NewJob) -> int:
        return self.enqueue_many([job])[0]

    def enqueue_many(self, jobs: Sequence[NewJob]) -> list[int]:
        for job in jobs:
            check_payload(job.payload, self._limits)
        return self.run(self.engine.jobs.enqueue, jobs)

    def enqueue_pairs(self, pairs: Sequence[JobWanted]) -> list[int]:
        return self.enqueue_many(new_jobs(pairs))

    def through(self, connection: Any, jobs: Sequence[NewJob]) -> list[int]:
        made = self.enqueue_many(jobs)
        self.connections.update(dict.fromkeys(made, connection))
        return made

    async def through_async(self, connection: Any, jobs: Sequence[NewJob]) -> list[int]:
        return self.through(connection, jobs)

    def job(self, job_id: int) -> JobRecord | None:
        return self.run(self.engine.jobs.get, job_id)

    def records(self) -> list[JobRecord]:
        """All of them, oldest first."""
        return self.run(self.engine.jobs.find, JobFilter(limit=JOBS_MAX))[::-1]

    def watch(self, job_id: int) -> Watch:
        return Pauses(lambda: self.job(job_id))

    def control(self, action: Action, job_id: int) -> str:
        done: ControlResult = self.run(self.engine.control.apply, action, job_id)
        if not done.allowed or done.state_after is None:
            sort = NotAllowed if done.found else NoSuchJob
            raise sort(control_refusal(job_id, action.value, done.state_before))
        return done.state_after.value

    def close(self) -> None:
        """A client that is closed and used again finds its jobs: they go with the block."""

    def run(self, call: Callable[..., Awaitable[T]], *args: Any) -> T:
        """On a Trio of its own: here, or in a thread where one runs already."""
        if loop_here() != "trio":
            return trio.run(call, *args)
        ended: list[T] = []
        failed: list[BaseException] = []

        def apart() -> None:
            try:
                ended.append(trio.run(call, *args))
            except BaseException as error:  # noqa: ASYNC103, BLE001 - raised where it is waited for
                failed.append(error)

        thread = threading.Thread(target=apart)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return ended[0]
