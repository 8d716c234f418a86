"""Handlers for the daemon's children, threads and tasks, as a user writes them."""

import asyncio  # noqa: TID251 - a user may
import ctypes
import gc
import os
import signal
import time
from pathlib import Path
from typing import Any

import trio

from musterd import Cancel, Fatal, JobContext, Retry, Snooze


def told(job: JobContext) -> Any:
    job.log("logged")
    return {"payload": job.payload, "attempt": job.attempt}


def plain(job: JobContext) -> Any:
    print("printed")
    return told(job)


async def on_asyncio(job: JobContext) -> Any:
    await asyncio.sleep(0)
    print("printed")
    return told(job)


async def on_trio(job: JobContext) -> Any:
    await trio.lowlevel.checkpoint()
    return told(job)


async def garbage(_job: JobContext) -> Any:
    await trio.lowlevel.checkpoint()
    return {"young_max": gc.get_threshold()[0], "stays": gc.get_freeze_count() > 0}


def ends(job: JobContext) -> str:
    """As the payload says; the second attempt succeeds."""
    if job.attempt > 1 and job.payload != "Retry always":
        return "second attempt"
    raise {
        "Retry": Retry(in_seconds=0, message="busy"),
        "Retry always": Retry(in_seconds=0, message="busy"),
        "Fatal": Fatal("never"),
        "Snooze": Snooze(in_seconds=0.1),
        "Cancel": Cancel("not wanted"),
        "ValueError": ValueError("no good"),
    }[job.payload]


async def async_ends(job: JobContext) -> str:  # noqa: ASYNC124 - as users write them
    return ends(job)


def misbehaves(job: JobContext) -> str:
    """As the payload says, in the first attempt only."""
    if job.attempt > 1:
        return "recovered"
    if job.payload == "exit":
        os._exit(3)
    elif job.payload == "segfault":
        ctypes.string_at(0)
    time.sleep(1000)
    return "not reached"


def holds_the_gil(_job: JobContext) -> str:
    ctypes.PyDLL(None).sleep(3)  # unlike CDLL it keeps the lock
    return "let go"


def waits(job: JobContext) -> str:
    """Says its process, then waits for the file `go` in the payload's folder."""
    folder = Path(job.payload)
    job.progress(42, "half way")
    (folder / f"pid-{os.getpid()}").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    return "finished"


async def async_waits(job: JobContext) -> str:
    job.progress(42, "half way")
    while not await trio.Path(job.payload, "go").exists():  # noqa: ASYNC110 - it tells nobody
        await trio.sleep(0.01)
    return "finished"


async def ignores_cancel(job: JobContext) -> str:
    with trio.CancelScope(shield=True):
        await async_waits(job)
    return "finished all the same"


def ignores_term(job: JobContext) -> str:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return waits(job)


def overspends(job: JobContext) -> None:
    for _ in range(3):
        job.spend(tokens=40)


def returns_much(job: JobContext) -> str:
    return "x" * int(job.payload)


def prints_much(_job: JobContext) -> None:
    print("begin")
    for _ in range(1_000):
        print("x" * 1_000)
    print("end")
