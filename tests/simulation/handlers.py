"""The work that simulated jobs do. A handler goes by its payload, and everything it does is in the
history.
"""

from __future__ import annotations

import hashlib
import json
from contextvars import ContextVar
from typing import Any, Protocol

import trio

from musterd.workers.context import Cancel, Fatal, JobContext, Retry, Snooze


class Host(Protocol):
    """The process that a handler runs in. `tell` writes a line of the history about a handler."""

    def tell(self, record: str, job: JobContext, **fields: Any) -> None: ...
    def block_loop(self, seconds: float) -> None: ...
    def die(self, job: JobContext) -> None: ...
    def befallen(self, what: str) -> None: ...


TALKATIVE = 4  # of so many jobs one logs, and says what it spends
HOST: ContextVar[Host] = ContextVar("HOST")


class Broken(Exception):
    """A handler's own fault."""


async def work(job: JobContext) -> Any:
    """`steps`: how long each takes; an effect follows each. The other keys: see `_end`."""
    host, payload = HOST.get(), job.payload
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"))
    host.tell("begin", job, digest=hashlib.sha256(text.encode()).hexdigest())
    try:
        await _do(job, host, payload)
        outcome, value = "success", {"attempt": job.attempt}
        _end(job, host, payload)
    except trio.Cancelled:
        host.tell("told", job)
        seconds = payload.get("deaf", 0.0)
        if seconds:  # it does not go at once, though it was told to
            host.befallen("hung_handler")
        with trio.move_on_after(seconds, shield=True):
            await trio.sleep(seconds)
        host.tell("end", job, outcome="stopped")
        raise
    except Exception as error:
        host.tell("end", job, outcome=type(error).__name__.lower())
        raise
    host.tell("end", job, outcome=outcome)
    return value


async def _do(job: JobContext, host: Host, payload: dict[str, Any]) -> None:
    steps = payload.get("steps", ())
    if payload.get("poison"):
        host.die(job)
        await trio.sleep(0.01)
    for number, seconds in enumerate(steps, start=1):
        await trio.sleep(seconds)
        if payload.get("block"):
            host.block_loop(payload["block"])
            await trio.lowlevel.checkpoint()
        host.tell("effect", job)
        if payload.get("n", 1) % TALKATIVE == 0:  # the others' successes are plain ones
            job.spend(steps=1)
            job.log(f"step {number}")
        job.progress(100 * number / len(steps), f"step {number}")


def _end(job: JobContext, host: Host, payload: dict[str, Any]) -> None:
    if job.attempt <= payload.get("fail_first", 0):
        raise Retry(payload.get("retry_in"), "fails at first")
    match payload.get("end", "success"):
        case "crash":
            host.befallen("crashing_handler")
            raise Broken("a fault of the handler")
        case "retry":
            raise Retry(payload.get("retry_in"))
        case "fatal":
            raise Fatal("never again")
        case "cancel":
            raise Cancel("not wanted")
        case "snooze" if job.attempt == 1:
            raise Snooze(payload.get("retry_in", 0.5))
        case _:
            return
