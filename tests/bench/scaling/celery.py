"""A contestant that is Celery, which scales its pool of processes by `--autoscale`, on Redis. It is
in an environment of its own, which `MUSTERD_BENCH_CELERY` names: musterd does not depend on it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from tests.bench.running import ended_at_the_end, wait_until
from tests.bench.scaling.daemons import MAX_COUNT
from tests.bench.scaling.figures import WARM_UP, Crew, Found, Ran
from tests.bench.scaling.loads import Arrival, together

VARIABLE = "MUSTERD_BENCH_CELERY"
LOOK_SECONDS = 0.05
WARM_UP_SECONDS = 14.0  # before the begin
APP = """
import json, os, sys, time
from celery import Celery

app = Celery("contestant", broker=os.environ["BROKER"])
app.conf.update(
    task_ignore_result=True, worker_prefetch_multiplier=1, broker_connection_retry_on_startup=True
)

@app.task(name="sleeps")
def sleeps(seconds, sent):
    begun = time.time()
    time.sleep(seconds)
    with open(os.environ["DONE"], "a") as file:
        file.write(json.dumps([sent, begun - sent, time.time() - begun]) + chr(10))

if __name__ == "__main__":
    for line in sys.stdin:
        at, each = json.loads(line)
        time.sleep(max(0.0, at - time.time()))
        for seconds in each:
            sleeps.delay(seconds, time.time())
"""


def missing() -> str | None:
    """Why it cannot take part; None = it can."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return f"{VARIABLE} names no virtual environment with celery[redis]"
    if not (Path(folder) / "bin" / "celery").exists():
        return f"{VARIABLE}={folder} has no bin/celery"
    return None if shutil.which("redis-server") else "there is no redis-server"


@attrs.define
class Celery:
    """As `Daemon`."""

    name: str = "celery"
    found: Found | None = attrs.field(default=None, init=False)

    def run(self, jobs: Sequence[Arrival], at_epoch: float, window_seconds: float) -> None:
        first = [[at_epoch - WARM_UP_SECONDS, [_seconds(one)]] for one in jobs[:WARM_UP]]
        later = [[at_epoch + at, [_seconds(one) for one in alike]] for at, alike in together(jobs)]
        with tempfile.TemporaryDirectory() as name, _redis(Path(name)) as broker:
            folder = Path(name)
            (folder / "contestant.py").write_text(APP)
            (folder / "done").touch()
            surroundings = os.environ | {"BROKER": broker, "DONE": str(folder / "done")}
            with _worker(folder, surroundings) as process_id:
                pool = Pool(process_id, at_epoch)
                with pool.watched():
                    _send(folder, surroundings, [*first, *later])
                    wait_until(lambda: time.time() > at_epoch + window_seconds)
                    wait_until(lambda: len(_done(folder)) >= len(jobs) + len(first))
            ran = sorted(Ran(sent - at_epoch, *more) for sent, *more in _done(folder))
        known = [one for one in ran if one.due_seconds >= 0]
        self.found = Found(self.name, known, pool.crews, pool.hired)


def _seconds(job: Arrival) -> float:
    return job.milliseconds / 1000


@attrs.define
class Pool:
    """Looks how many processes the worker has."""

    process_id: int
    at_epoch: float
    crews: list[Crew] = attrs.field(factory=list[Crew], init=False)
    hired: int = attrs.field(default=0, init=False)

    @contextmanager
    def watched(self) -> Generator[None]:
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=[over])
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _watch(self, over: threading.Event) -> None:
        children = Path(f"/proc/{self.process_id}/task/{self.process_id}/children")
        before: set[str] = set()
        while not over.wait(LOOK_SECONDS):
            there = set(children.read_text().split())
            at = time.time() - self.at_epoch
            self.hired += len(there - before) if at >= 0 else 0
            if there != before:
                self.crews.append(Crew(at, len(there)))
            before = there


def _send(folder: Path, surroundings: dict[str, str], lines: Sequence[object]) -> None:
    python = Path(surroundings[VARIABLE]) / "bin" / "python"
    told = "".join(json.dumps(line) + "\n" for line in lines)
    command = [str(python), "contestant.py"]
    subprocess.run(command, cwd=folder, env=surroundings, input=told, text=True, check=True)


def _done(folder: Path) -> list[list[float]]:
    return [json.loads(line) for line in (folder / "done").read_text().splitlines()]


@contextmanager
def _redis(folder: Path) -> Generator[str]:
    socket = folder / "redis.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", ""]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        wait_until(socket.exists, 10)
        yield f"redis+socket://{socket}"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _worker(folder: Path, surroundings: dict[str, str]) -> Generator[int]:
    celery = Path(surroundings[VARIABLE]) / "bin" / "celery"
    command = [str(celery), "-A", "contestant", "worker", f"--autoscale={MAX_COUNT},1"]
    command += ["--loglevel=error"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, env=surroundings, stdout=log, stderr=log)
        with ended_at_the_end(process) as number:
            yield number
