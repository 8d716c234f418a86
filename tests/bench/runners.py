"""What Python kinds cost: real daemons on both engines, and one child by itself."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from musterd.workers.runners.child_messages import FRAME, NOBODY
from musterd.workers.runners.process import PROGRAM
from tests.bench import embedded, postgres
from tests.bench.running import daemon, wait_until
from tests.support.postgres_server import PostgresServer

BATCH = 1_000
WORKERS = 8
NOOPS = ("noop", "task-noop", "thread-noop", "process-noop")
FILL = "insert into musterd.job_rows (kind) select %s from generate_series(1, %s)"
HANDLERS = """
import os, time
def noop(job): return None
async def async_noop(job): return None
def resident(job):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))
def work(job):
    for _ in range(6000):
        sum(range(1000))
"""
# The same, by itself: says how long so many took, without the start of the interpreter.
BARE_WORK = (
    HANDLERS
    + """
import sys
began = time.perf_counter()
for _ in range(int(sys.argv[1])):
    work(None)
print(time.perf_counter() - began)
"""
)
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


class Cores(NamedTuple):
    """What a second worker brings to jobs that compute, and what a second bare process does."""

    times_as_fast: float
    times_as_fast_bare: float


def noops(drain_one: Callable[[str], float], rounds: int = 3) -> Rates:
    """Each kind is drained in turn, round after round: what else the machine does hits all."""
    found: dict[str, list[float]] = {kind: [] for kind in NOOPS}
    for _ in range(rounds):
        for kind in NOOPS:
            found[kind].append(drain_one(kind))
    return Rates({kind: statistics.median(rates) for kind, rates in found.items()})


def drain(kind: str, rows: int, workers: int = WORKERS) -> float:
    """Jobs a second on the embedded engine, from the first start to the last settlement."""
    with _sets(workers) as sets, tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        return embedded.drained(Path(folder) / "bench.db", kind, rows, sets)


def drain_postgres(server: PostgresServer, kind: str, rows: int, workers: int = WORKERS) -> float:
    """The same on PostgreSQL."""
    dsn = postgres.prepared(server, "kinds", 0)
    with _sets(workers) as sets, psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(FILL, [kind, rows])
        conn.execute("vacuum analyze")
        with daemon(dsn, sets):
            wait_until(lambda: postgres.succeeded(conn) >= rows)
        span = conn.execute(postgres.SPAN).fetchone()
    server.drop_database("kinds")
    assert span is not None
    return rows / float(span[0])


def two_cores(jobs: int = 160, rounds: int = 5) -> Cores:
    """Medians of rounds. Daemons and bare processes take turns: on a busy machine there are no two
    cores to be had, and only the bare processes of the same minute say how much there is.
    """
    found: list[Cores] = []
    for _ in range(rounds):
        bare = bare_rate(jobs, 2) / bare_rate(jobs, 1)
        found.append(Cores(drain("work", jobs, 2) / drain("work", jobs, 1), bare))
    return Cores(*(statistics.median(each) for each in zip(*found, strict=True)))


def bare_rate(jobs: int, processes: int) -> float:
    """Jobs a second of so many interpreters that share the jobs, with nothing around them."""
    command = [sys.executable, "-c", BARE_WORK, str(jobs // processes)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(processes)]
    return jobs / max(float(each.communicate()[0]) for each in running)


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
            [sys.executable, "-I", str(PROGRAM), json.dumps(options)],
            pass_fds=(theirs.fileno(),),
        ):
            theirs.close()
            head: dict[str, object] = {
                "kind": "resident", "function": ("handlers", "resident"), "budgets": {},
                "claim": (1, str(uuid.UUID(int=1)), 1), "spent": {},
            }  # fmt: skip
            data = (json.dumps(head) + "\n{}").encode()
            ours.sendall(FRAME.pack(len(data), 1, NOBODY) + data)
            said = b""
            while b'"end"' not in said or not said.rpartition(b"\n")[2]:
                said += ours.recv(65_536)
            ours.close()
    return int(said.rpartition(b"\n")[2])


@contextmanager
def _sets(workers: int) -> Generator[tuple[str, ...]]:
    """Settings for so many workers and the kinds, whose files last as long as the block."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        kinds = Path(name) / "kinds.toml"
        (kinds.parent / "handlers.py").write_text(HANDLERS)
        kinds.write_text(KINDS)
        yield (
            f"workers.default_count={workers}",
            f"workers.max_count={workers}",
            f"catalog.paths={json.dumps([str(kinds)])}",
        )
