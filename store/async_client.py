"""The client for programs on an event loop, asyncio's or Trio's. What blocks is done in a few
threads of its own, by the code of the blocking client; a job of the caller's transaction is made
over the caller's own connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, Self, TypeVar, Unpack

from musterd.store.client_base import ClientBase, ClientOptions, are_pairs
from musterd.store.errors import NoSuchJob
from musterd.store.event_loops import this_loop
from musterd.store.input import JobWanted, new_job, new_jobs
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import Action
from musterd.store.tracing import traced, traced_jobs
from musterd.store.watching import Look

T = TypeVar("T")


class AsyncClient(ClientBase):
    """As `Client`, with the same arguments, and the same words as coroutines, for any number of
    tasks on any loop.

    A call that is cancelled before it has begun is not made; one that has begun may still be
    carried out, so give a `dedup_key` where a job must not be made twice.
    """

    def __init__(self, url: str, **options: Unpack[ClientOptions]) -> None:
        super().__init__(url, **options)
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    async def enqueue(
        self, kind: str, payload: Any = None, *, connection: Any = None, **options: Any
    ) -> int:
        """Creates a job and returns its id; if a job holds its `dedup_key`, returns that job's id.

        Options are those of `Client.enqueue`. With `connection`, the caller's own connection to
        PostgreSQL (psycopg's `AsyncConnection`), the job is created in its transaction: with its
        commit and not without it.
        """
        if (other := self._other(options.pop("tenant", None))) is not None:
            return await other.enqueue(kind, payload, connection=connection, **options)
        job = new_job(kind, payload, traced(options))
        if connection is not None:
            return (await self._backend.through_async(connection, [job]))[0]
        return await self._called(partial(self._backend.enqueue, job))

    async def enqueue_many(
        self, jobs: Iterable[JobWanted], *, connection: Any = None, tenant: str | None = None
    ) -> list[int]:
        """Creates all of the jobs or none, and returns their ids in order; see
        `Client.enqueue_many`.
        """
        if (other := self._other(tenant)) is not None:
            return await other.enqueue_many(jobs, connection=connection)
        wanted = traced_jobs(list(jobs))
        if not wanted:
            return []
        if connection is not None:
            return await self._backend.through_async(connection, new_jobs(wanted))
        if are_pairs(wanted):
            return await self._called(partial(self._backend.enqueue_pairs, wanted))
        return await self._called(partial(self._backend.enqueue_many, new_jobs(wanted)))

    async def job(self, job_id: int) -> dict[str, Any]:
        """The job object; see `Client.job`. Raises `NoSuchJob`."""
        record = await self._called(partial(self._backend.job, job_id))
        if record is None:
            raise NoSuchJob(f"there is no job {job_id}")
        return self._object(record)

    async def wait(self, job_id: int, timeout: float | None = None) -> dict[str, Any]:  # noqa: ASYNC109 - as `Client.wait`; on its own loop a caller may also use a scope
        """The job object, once the job has succeeded, failed or been canceled. Raises `NoSuchJob`,
        and `TimeoutError` after `timeout` seconds. PostgreSQL tells when the job ends; an embedded
        store is looked at, up to every half second. Any number of tasks may wait at once: on
        PostgreSQL one connection listens for all of them.
        """
        seen: JobRecord | None = None
        with closing(self._waiting(job_id, timeout)) as waiting:
            while not isinstance(step := waiting.send(seen), JobRecord):
                if isinstance(step, Look):
                    seen = await self._called(step.ask)
                else:
                    await this_loop().rest(step.signal, step.seconds)
        return self._object(step)

    async def cancel(self, job_id: int) -> str:
        """As `Client.cancel`; so are the four below."""
        return await self._control(Action.CANCEL, job_id)

    async def pause(self, job_id: int) -> str:
        return await self._control(Action.PAUSE, job_id)

    async def resume(self, job_id: int) -> str:
        return await self._control(Action.RESUME, job_id)

    async def release(self, job_id: int) -> str:
        return await self._control(Action.RELEASE, job_id)

    async def clear(self, job_id: int) -> str:
        return await self._control(Action.CLEAR, job_id)

    async def close(self) -> None:
        """Closes all connections. Safe to call twice; a client used again connects again."""
        for other in self._others.values():
            await other.close()
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            closed = threads.submit(self._backend.close)
            threads.shutdown(wait=False)
            await this_loop().finish(closed)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()  # noqa: ASYNC102 - `finish` is shielded, on either loop

    async def _control(self, action: Action, job_id: int) -> str:
        return await self._called(partial(self._backend.control, action, job_id))

    async def _called(self, call: Callable[[], T]) -> T:
        loop = this_loop()
        with self._lock:
            if self._threads is None:
                # As many as there are connections: more would only wait for one.
                self._threads = ThreadPoolExecutor(self._pool_size, "musterd-client")
            future = self._threads.submit(call)
        return await loop.result(future)
