"""Waiting for the end of a job, as a program: when to look, and what to rest for in between. It
does neither itself: one client sleeps, the other lets its event loop go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import NamedTuple, Protocol, TypeAlias

import attrs

from musterd.store.errors import NoSuchJob
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import ENDED

PAUSE_SECONDS = 0.02  # between two looks where nobody tells, doubled each time
PAUSE_SECONDS_MAX = 0.5


class Look(NamedTuple):
    """To be called; it asks the store, and takes as long as that takes."""

    ask: Callable[[], JobRecord | None]


class Rest(NamedTuple):
    """Until `signal` is done, `seconds` at most. None = nobody tells."""

    signal: Future[None] | None
    seconds: float


# Is sent what a look has seen; its last step is the job that has ended.
Waiting: TypeAlias = Generator[Look | Rest | JobRecord, JobRecord | None, None]


class Watch(Protocol):
    """How one job is watched. `rest` and `end` return at once."""

    def look(self) -> JobRecord | None: ...

    def rest(self, seconds_max: float) -> Rest:
        """What to wait for before the next look."""
        ...

    def end(self) -> None: ...


@attrs.define
class Pauses:
    """A watch that looks again after pauses which grow."""

    look: Callable[[], JobRecord | None]
    _pause_seconds: float = attrs.field(default=PAUSE_SECONDS, init=False)

    def rest(self, seconds_max: float) -> Rest:
        seconds = min(self._pause_seconds, seconds_max)
        self._pause_seconds = min(PAUSE_SECONDS_MAX, self._pause_seconds * 2)
        return Rest(None, seconds)

    def end(self) -> None:
        """Nothing is held."""


def until_ended(
    job_id: int,
    timeout_seconds: float | None,
    read: Callable[[], JobRecord | None],
    watch: Callable[[], Watch],
) -> Waiting:
    """Raises `NoSuchJob`, and `TimeoutError`. A job that has ended already costs one `read`."""
    deadline = float("inf") if timeout_seconds is None else time.monotonic() + timeout_seconds
    record = _known(job_id, (yield Look(read)))
    if record.state in ENDED or deadline <= time.monotonic():
        yield _ended(record, timeout_seconds)
        return
    watched = watch()
    try:
        while (record := _known(job_id, (yield Look(watched.look)))).state not in ENDED:
            left_seconds = deadline - time.monotonic()
            if left_seconds <= 0:
                break
            yield watched.rest(left_seconds)
    finally:
        watched.end()
    yield _ended(record, timeout_seconds)


def _known(job_id: int, record: JobRecord | None) -> JobRecord:
    if record is None:
        raise NoSuchJob(f"there is no job {job_id}")
    return record


def _ended(record: JobRecord, timeout_seconds: float | None) -> JobRecord:
    if record.state in ENDED:
        return record
    raise TimeoutError(f"job {record.id} is still {record.state} after {timeout_seconds:g} s")
