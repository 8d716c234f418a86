"""Handlers as a user writes them, each good for one test."""

import ctypes
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import trio

from musterd import BudgetExceeded, Cancel, Fatal, JobContext, Retry, Snooze

STATE = {"runs": 0}
HELD: list[bytearray] = []


class Declined(OSError):
    """An error of the user's own."""


def noop(_job: JobContext) -> None:
    return None


async def async_noop(_job: JobContext) -> None:  # noqa: ASYNC124 - as users write them
    return None


def facts(job: JobContext) -> Any:
    STATE["runs"] += 1
    return {
        "payload": job.payload,
        "attempt": job.attempt,
        "fence": job.fence,
        "phase": job.phase,
        "remaining": job.remaining(),
        "runs": STATE["runs"],
        "pid": os.getpid(),
    }


async def async_facts(job: JobContext) -> Any:  # noqa: ASYNC124 - as users write them
    return facts(job)


def tells(job: JobContext) -> str:
    job.log("first")
    job.progress(10, "begun")
    for percent in range(20, 120, 10):
        job.progress(percent)
    job.spend(tokens=4)
    job.log("last")
    return "told"


async def async_tells(job: JobContext) -> str:  # noqa: ASYNC124 - as users write them
    return tells(job)


def prints(job: JobContext) -> None:
    print("to stdout")
    job.log("by log")
    print("to stderr", file=sys.stderr)
    sys.stderr.flush()
    os.write(1, b"to the descriptor\n")
    subprocess.run(["/bin/sh", "-c", "echo by a program"], check=True)


def floods(_job: JobContext) -> None:
    print("begin")
    for _ in range(400):
        print("x" * 10_000)
    print("end")


def breaks_stdout(_job: JobContext) -> str:
    os.close(1)
    os.close(2)
    return "done"


def environment(_job: JobContext) -> dict[str, str]:
    return dict(os.environ)


def surroundings(_job: JobContext) -> Any:
    mask = os.umask(0o077)
    return {
        "umask": mask,
        "files": sorted(each.name for each in Path("/proc/self/fd").iterdir()),
        "leader": os.getsid(0) == os.getpid(),
        "input": sys.stdin.read(),
        "names": sorted(name for name in sys.modules if name.partition(".")[0] == "musterd"),
    }


def raises(job: JobContext) -> None:
    errors: dict[str, BaseException] = {
        "ValueError": ValueError("no good"),
        "Declined": Declined("card"),
        "Retry": Retry(in_seconds=7, message="busy"),
        "Fatal": Fatal("never"),
        "Snooze": Snooze(in_seconds=9),
        "Cancel": Cancel("not wanted"),
        "SystemExit": SystemExit(3),
        "KeyboardInterrupt": KeyboardInterrupt(),
        "group": ExceptionGroup("two", [ValueError("a"), KeyError("b")]),
        "group of one": ExceptionGroup("one", [Retry(in_seconds=7, message="busy")]),
    }
    raise errors[job.payload]


async def async_raises(job: JobContext) -> None:  # noqa: ASYNC124 - as users write them
    raises(job)


def returns(job: JobContext) -> Any:
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    values: dict[str, Any] = {
        "nan": math.nan,
        "object": object(),
        "deep": deep,
        "large": "x" * 100_000,
        "nul": "a\0b",
        "surrogate": "\ud800",
        "text": "grün ☃",
        "nothing": None,
        "list": [1, 2.5, True, None, {"a": "b"}],
    }
    return values[job.payload]


async def async_returns(job: JobContext) -> Any:  # noqa: ASYNC124 - as users write them
    return returns(job)


def overspends(job: JobContext) -> str:
    job.spend(tokens=8)
    job.spend(tokens=8)
    return "not reached"


def stops_when_over(job: JobContext) -> str:
    try:
        job.spend(tokens=12)
    except BudgetExceeded:
        return "in time"
    return "not reached"


def spends_on(job: JobContext) -> str:
    for _ in range(2):
        try:
            job.spend(tokens=12)
        except BudgetExceeded:
            continue
    return "too late"


async def async_spends_on(job: JobContext) -> str:  # noqa: ASYNC124 - as users write them
    return spends_on(job)


def exits(_job: JobContext) -> None:
    os._exit(3)


def segfaults(_job: JobContext) -> None:
    ctypes.string_at(0)


def killed(_job: JobContext) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(job: JobContext) -> None:
    """Says its process id and that of a child, then sleeps; cleans up if it is told to stop."""
    child = subprocess.Popen(["/bin/sleep", "1000"])
    Path(job.payload).write_text(f"{os.getpid()}\n{child.pid}\n")
    job.log("hanging")
    try:
        time.sleep(1000)
    finally:
        job.log("cleaned up")


def reports_at_its_end(job: JobContext) -> None:
    try:
        Path(job.payload).write_text("begun\n")  # it may be stopped from here on
        time.sleep(1000)
    finally:
        job.spend(tokens=3)
        job.progress(40, "as far as it came")


def ignores_term(job: JobContext) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(job.payload).write_text(f"{os.getpid()}\n")
    time.sleep(1000)


def holds_memory(_job: JobContext) -> int:
    HELD.append(bytearray(b"x" * 100_000_000))
    return os.getpid()


def waits_for_file(job: JobContext) -> str:
    while not Path(job.payload).exists():
        time.sleep(0.005)
    return "seen"


async def async_waits(job: JobContext) -> None:
    job.log("waiting")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        nursery.start_soon(trio.sleep_forever)


def spins(_job: JobContext) -> None:
    """A tenth of a second of pure work."""
    end = time.process_time() + 0.1
    while time.process_time() < end:
        sum(range(1000))


def phased(job: JobContext) -> Any:
    """What a phase sees: its name, and of each name that the payload lists what it returned."""
    seen: dict[str, Any] = {}
    for name in job.payload["read"]:
        try:
            seen[name] = job.phase_result(name)
        except LookupError as error:
            seen[name] = f"LookupError: {error}"
    job.log(f"in {job.phase}")
    job.progress(50)
    return {"phase": job.phase, "seen": seen}


async def async_phased(job: JobContext) -> Any:  # noqa: ASYNC124 - as users write them
    return phased(job)


def slotted(job: JobContext) -> Any:
    slot = job.scheduled_for
    return [job.schedule, slot and slot.isoformat(), job.phase_results()]


def large(job: JobContext) -> str:
    return "x" * int(job.payload["size"])


def reads_large(job: JobContext) -> list[int]:
    return [len(job.phase_result(name)) for name in job.payload["read"]]


def reads_in_threads(job: JobContext) -> list[Any]:
    """As many threads at once as a handler may like."""
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(job.phase_result("first"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found
