"""What Python kinds cost: real daemons on the embedded engine, and one child by itself."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import NamedTuple

import trio

from musterd.config.load import load
from musterd.store.job import NewJob
from musterd.store.opening import make_engine
from musterd.workers.runners import executor
from tests.bench.running import daemon, wait_until

BATCH = 1_000
HANDLERS = """
import os, time
def noop(job): return None
async def async_noop(job): return None
def resident(job):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
def work(job):
    end = time.process_time() + 0.05
    while time.process_time() < end:
        sum(range(1000))
"""
KINDS = """
[kinds.process-noop]
python = "handlers:noop"
[kinds.task-noop]
python = "handlers:async_noop"
isolation = "task"
[kinds.thread-noop]
python = "handlers:noop"
isolation = "thread"
[kinds.resident]
python = "handlers:resident"
[kinds.work]
python = "handlers:work"
"""
ASK_RESIDENT = (
    "print(next(int(x.split()[1]) for x in open('/proc/self/status') if x.startswith('VmRSS:')))"
)


class Rates(NamedTuple):
    """Jobs a second of no-op kinds, by kind; medians of interleaved rounds."""

    by_kind: dict[str, float]

    def ratio(self, kind: str, to: str) -> float:
        return self.by_kind[kind] / self.by_kind[to]


def noops(rows: int, workers: int = 8, rounds: int = 3) -> Rates:
    """One daemon with so many workers drains each kind in turn, round after round."""
    kinds = ("noop", "task-noop", "thread-noop", "process-noop")
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            found[kind].append(drain(kind, rows, workers))
    return Rates({kind: statistics.median(rates) for kind, rates in found.items()})


def drain(kind: str, rows: int, workers: int) -> float:
    """Jobs a second, from the first start to the last settlement."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        (folder / "handlers.py").write_text(HANDLERS)
        (folder / "kinds.toml").write_text(KINDS)
        path = folder / "bench.db"
        trio.run(_fill, f"sqlite:///{path}", kind, rows)
        sets = (
            f"workers.default_count={workers}",
            f"workers.max_count={workers}",
            f"catalog.paths={json.dumps([str(folder / 'kinds.toml')])}",
        )
        with daemon(f"sqlite:///{path}", sets), sqlite3.connect(path) as conn:
            wait_until(lambda: _done(conn) == rows)
            first, last = conn.execute(
                "select min(started_at), max(finished_at) from job_rows"
            ).fetchone()
        return rows / ((float(last) - float(first)) / 1e6)


def two_cores(rows: int = 80) -> float:
    """How many times as fast two workers do pure computing as one does."""
    return drain("work", rows, 2) / drain("work", rows, 1)


def child_mib_above_bare() -> float:
    """What a child holds beyond a bare interpreter of the same version."""
    bare = subprocess.run(
        [sys.executable, "-I", "-c", ASK_RESIDENT], capture_output=True, check=True, text=True
    )
    return (_resident_kib_of_child() - int(bare.stdout)) / 1024


def _resident_kib_of_child() -> int:
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryDirectory() as folder, ours:
        (Path(folder) / "handlers.py").write_text(HANDLERS)
        options = {"socket": theirs.fileno(), "parent": os.getpid(), "search_path": [folder]}
        with subprocess.Popen(
            [sys.executable, "-I", str(executor.PROGRAM), json.dumps(options)],
            pass_fds=(theirs.fileno(),),
        ):
            theirs.close()
            head: dict[str, object] = {
                "kind": "resident", "function": ("handlers", "resident"), "budgets": {},
                "claim": (1, str(uuid.UUID(int=1)), 1), "spent": {},
            }  # fmt: skip
            data = (json.dumps(head) + "\n{}").encode()
            ours.sendall(len(data).to_bytes(4, "big") + data)
            said = b""
            while b'"end"' not in said or not said.rpartition(b"\n")[2]:
                said += ours.recv(65_536)
            ours.close()
    return int(said.rpartition(b"\n")[2])


async def _fill(url: str, kind: str, rows: int) -> None:
    engine = make_engine(url, load(None, {}, []).settings, lambda: 1_700_000_000.0)
    await engine.open()
    await engine.migrate()
    for first in range(0, rows, BATCH):
        await engine.enqueue([NewJob(kind) for _ in range(min(BATCH, rows - first))])
    await engine.close()


def _done(conn: sqlite3.Connection) -> int:
    row = conn.execute("select count(*) from job_rows where state = 'succeeded'").fetchone()
    return int(row[0])
