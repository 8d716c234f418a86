"""The client for other programs: enqueues jobs, reads them, acts on them. It blocks, for any number
of threads; needs no daemon and no configuration file.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import closing, suppress
from functools import partial
from typing import Any, Self, TypeVar

from musterd.store.client_base import ClientBase, are_pairs
from musterd.store.errors import NoSuchJob
from musterd.store.event_loops import loop_here
from musterd.store.input import JobWanted, new_job, new_jobs
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import Action
from musterd.store.tracing import traced, traced_jobs
from musterd.store.watching import Look

T = TypeVar("T")
BLOCKS = (
    "musterd.Client blocks the {loop} event loop that runs in this thread: use musterd.AsyncClient"
    " there, or call it in a thread ({thread})"
)
THREADS = {"asyncio": "asyncio.to_thread", "trio": "trio.to_thread.run_sync"}
has_warned = False


class Client(ClientBase):
    __doc__ = ClientBase.__doc__

    def enqueue(
        self, kind: str, payload: Any = None, *, connection: Any = None, **options: Any
    ) -> int:
        """Creates a job and returns its id; if a job holds its `dedup_key`, returns that job's id.

        `options` are those of `config/job_options.py`, which docs/clients.md lists under Options: a
        wrong name is refused with all right ones. `tenant` makes it another tenant's job. With
        `connection`, the caller's own connection to PostgreSQL, the job is created in its
        transaction: with its commit and not without it. Otherwise the job is in the store when this
        returns, once, even if the store's reply was lost on the way. Raises `OutcomeUnknown` when
        even the store cannot tell.
        """
        if (other := self._other(options.pop("tenant", None))) is not None:
            return other.enqueue(kind, payload, connection=connection, **options)
        job = new_job(kind, payload, traced(options))
        if connection is not None:
            return _called(partial(self._backend.through, connection, [job]))[0]
        return _called(partial(self._backend.enqueue, job))

    def enqueue_many(
        self, jobs: Iterable[JobWanted], *, connection: Any = None, tenant: str | None = None
    ) -> list[int]:
        """Creates all of the jobs or none, and returns their ids in order. Each is a pair (kind,
        payload) or a mapping with `kind`, `payload` and options. Give very many jobs in batches of
        some thousand.
        """
        if (other := self._other(tenant)) is not None:
            return other.enqueue_many(jobs, connection=connection)
        wanted = traced_jobs(list(jobs))
        if not wanted:
            return []
        if connection is not None:
            return _called(partial(self._backend.through, connection, new_jobs(wanted)))
        if are_pairs(wanted):
            return _called(partial(self._backend.enqueue_pairs, wanted))
        return _called(partial(self._backend.enqueue_many, new_jobs(wanted)))

    def job(self, job_id: int) -> dict[str, Any]:
        """The job object, as `musterd job ID --json` prints it; `max_attempts` is None where it is
        left to the kind. Raises `NoSuchJob`.
        """
        record = _called(partial(self._backend.job, job_id))
        if record is None:
            raise NoSuchJob(f"there is no job {job_id}")
        return self._object(record)

    def wait(self, job_id: int, timeout: float | None = None) -> dict[str, Any]:
        """The job object, once the job has succeeded, failed or been canceled. Raises `NoSuchJob`,
        and `TimeoutError` after `timeout` seconds. PostgreSQL tells when the job ends; an embedded
        store is looked at, up to every half second.
        """
        seen: JobRecord | None = None
        with closing(self._waiting(job_id, timeout)) as waiting:
            while not isinstance(step := waiting.send(seen), JobRecord):
                if isinstance(step, Look):
                    seen = _called(step.ask)
                else:
                    _rest(step.signal, step.seconds)
        return self._object(step)

    def cancel(self, job_id: int) -> str:
        """Cancels a job: a waiting one at once, a running one as soon as its worker hears.

        This and the four below return the state of the job now, and raise `NoSuchJob`, or
        `NotAllowed` where the job's state does not allow it.
        """
        return self._control(Action.CANCEL, job_id)

    def pause(self, job_id: int) -> str:
        """Pauses a job until it is resumed; a running one as soon as its worker hears."""
        return self._control(Action.PAUSE, job_id)

    def resume(self, job_id: int) -> str:
        """Puts a paused or failed job back into the queue, with its whole budget of attempts."""
        return self._control(Action.RESUME, job_id)

    def release(self, job_id: int) -> str:
        """Releases a job that was enqueued with `hold`."""
        return self._control(Action.RELEASE, job_id)

    def clear(self, job_id: int) -> str:
        """Marks a failed job as dealt with; a paused one is canceled."""
        return self._control(Action.CLEAR, job_id)

    def close(self) -> None:
        """Closes all connections. Safe to call twice; a client used again connects again."""
        self._backend.close()
        for other in self._others.values():
            other.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _control(self, action: Action, job_id: int) -> str:
        return _called(partial(self._backend.control, action, job_id))


def _called(call: Callable[[], T]) -> T:
    _warn_if_it_blocks()
    return call()


def _rest(signal: Future[None] | None, seconds: float) -> None:
    if signal is None:
        time.sleep(seconds)
        return
    with suppress(TimeoutError):
        signal.result(seconds)


def _warn_if_it_blocks() -> None:
    """Once in a process: the loop is blocked by design or by mistake, in one place or in all."""
    global has_warned  # noqa: PLW0603 - of the process, as the warning is
    if has_warned or (loop := loop_here()) is None:
        return
    has_warned = True
    said = BLOCKS.format(loop=loop, thread=THREADS[loop])
    warnings.warn(said, RuntimeWarning, stacklevel=4)
