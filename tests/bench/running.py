"""A daemon under measurement: the real program in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
ROOT = Path(__file__).parents[2]


class Used(NamedTuple):
    """What a process has used so far."""

    cpu_seconds: float
    resident_mib: float


@contextmanager
def daemon(url: str, sets: Sequence[str] = ()) -> Generator[int]:
    """Starts `musterd run` on `url`; gives its process id; drains it at the end."""
    chosen = [f"store.url={url}", "http.listen=", "log.level=warning", *sets]
    command = [sys.executable, "-m", "musterd", "run"]
    for one in chosen:
        command += ["--set", one]
    with ended_at_the_end(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)) as number:
        yield number


@contextmanager
def ended_at_the_end(process: subprocess.Popen[bytes]) -> Generator[int]:
    """Gives its process id. It is asked to end, then made to."""
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def used(process_id: int) -> Used:
    """CPU time and resident memory of a process, from /proc."""
    stat = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    ticks = int(stat[11]) + int(stat[12])
    status = Path(f"/proc/{process_id}/status").read_text()
    resident = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
    resident_kib = int(next(resident, 0))  # one that is ending has given its memory back
    return Used(ticks / TICKS_A_SECOND, resident_kib / 1024)


def wait_until(done: object, seconds: float = 300.0) -> None:
    """Polls `done` until it is true; raises if that takes longer than `seconds`."""
    assert callable(done)
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not done within {seconds:g} s")
        time.sleep(0.02)
