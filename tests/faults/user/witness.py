"""Handlers that say what they do, when they do it, in a file that all of them append to."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from musterd import JobContext, Retry

FILE = os.environ["FAULTS_WITNESS"]
NODE = os.environ["FAULTS_NODE"]
STEP_SECONDS = 0.03
_file = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)


class Lost(Exception):
    """The lease is no longer to be trusted: nothing more may be done."""


def tell(record: str, job: JobContext, **more: Any) -> None:
    """One line, in one write."""
    said = {
        "record": record,
        "t": time.clock_gettime(time.CLOCK_MONOTONIC),
        "job": job.fence.id,
        "attempt": job.attempt,
        "token": job.fence.token,
        "who": f"node:{NODE}",
        **more,
    }
    os.write(_file, (json.dumps(said) + "\n").encode())


def digest(payload: Any) -> str:
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def step(job: JobContext) -> None:
    """Something outside is changed, if that is still ours to do."""
    if job.remaining() <= 0:
        raise Lost
    tell("effect", job)


def steps_of(job: JobContext) -> int:
    seconds: float = job.payload["ms"] / 1000
    return max(1, round(seconds / STEP_SECONDS))


def conclude(job: JobContext) -> None:
    if job.attempt <= job.payload.get("fails", 0):
        raise Retry(message="not yet")


def ended(job: JobContext, error: BaseException | None) -> None:
    """A handler that is told to stop hears of it by an exception that is no error."""
    if error is not None and not isinstance(error, Exception):
        tell("told", job)
    tell("end", job, outcome="success" if error is None else type(error).__name__)


@contextmanager
def witnessed(job: JobContext) -> Generator[None]:
    """Writes down when the work begins and how it ends."""
    tell("begin", job, digest=digest(job.payload))
    try:
        yield
        conclude(job)
    except BaseException as error:
        ended(job, error)
        raise
    ended(job, None)


def work(job: JobContext) -> dict[str, int]:
    with witnessed(job):
        for _ in range(steps_of(job)):
            time.sleep(STEP_SECONDS)
            step(job)
    return {"attempt": job.attempt}
