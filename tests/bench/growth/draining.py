"""One drain under measurement: daemons in processes of their own, and jobs that note when they ran.

Each job appends one record, in one write, as in the benchmark of the peers. What daemons need to
start, and the first jobs, do not count.
"""

from __future__ import annotations

import json
import struct
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

from tests.bench.growth.figures import Figures, Moment
from tests.bench.running import Used, daemon, used

RECORD = struct.Struct("<qdd")  # number of the job, when it began, when it ended
NAP_SECONDS = 0.1
PATIENCE_SECONDS = 120.0
LOOK_SECONDS = 0.004
HANDLERS = """
import os, struct, time, trio
RECORD = struct.Struct("<qdd")
file = os.open({records!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
async def note(job):
    now = time.time()
    os.write(file, RECORD.pack(job.payload["i"], now, now))
async def nap(job):
    began = time.time()
    await trio.sleep({nap_seconds})
    os.write(file, RECORD.pack(job.payload["i"], began, time.time()))
"""
KINDS = """
[kinds.note]
python = "growth_handlers:note"
isolation = "task"
[kinds.nap]
python = "growth_handlers:nap"
isolation = "task"
"""


@attrs.frozen
class Workshop:
    """The catalog of the daemons, and the records of their jobs."""

    folder: Path

    @property
    def records(self) -> Path:
        return self.folder / "records"

    def sets(self, workers: int) -> list[str]:
        return [
            f"workers.default_count={workers}",
            f"workers.max_count={workers}",
            f"catalog.paths={json.dumps([str(self.folder / 'kinds.toml')])}",
        ]

    def done(self) -> int:
        return self.records.stat().st_size // RECORD.size

    def spans(self, first: int, last: int) -> list[tuple[float, float]]:
        """When the jobs from the `first` on up to the `last` began and ended."""
        data = self.records.read_bytes()[first * RECORD.size : last * RECORD.size]
        return [(began, ended) for _, began, ended in RECORD.iter_unpack(data)]


@attrs.frozen
class Work:
    """`jobs` count, after `warm` that do not. `url` and `sets` are the daemons'."""

    url: str
    jobs: int
    warm: int
    workers: int = 100
    daemons: int = 1
    sets: Sequence[str] = ()


@attrs.frozen
class Gate:
    """How a queue is held until all daemons are there, and told to stop when enough is done;
    whose processor time counts beside theirs.
    """

    ready: Callable[[], bool]
    open: Callable[[], None]
    close: Callable[[], None]
    served: Callable[[], dict[int, Used]]


@contextmanager
def workshop() -> Generator[Workshop]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        shop = Workshop(Path(name))
        handlers = HANDLERS.format(records=str(shop.records), nap_seconds=NAP_SECONDS)
        (shop.folder / "growth_handlers.py").write_text(handlers)
        (shop.folder / "kinds.toml").write_text(KINDS)
        shop.records.touch()
        yield shop


def drained(work: Work, gate: Gate) -> Figures:
    gate.close()
    with workshop() as shop, ExitStack() as stack:
        sets = [*shop.sets(work.workers), *work.sets]
        ours = [stack.enter_context(daemon(work.url, sets)) for _ in range(work.daemons)]
        _until(gate.ready)
        gate.open()
        _until(lambda: shop.done() >= work.warm)
        first = moment(shop, ours, gate)
        _until(lambda: shop.done() >= work.warm + work.jobs)
        last = moment(shop, ours, gate)
        gate.close()
        ends = [ended for _, ended in shop.spans(first.done - 1, last.done)]
        return first.until(last, (last.done - first.done) / (max(ends) - ends[0]))


def drained_by_bursts(work: Work, gate: Gate, fill: Callable[[int], None], burst: int) -> Figures:
    """As `drained`, but the queue never holds more than `burst` jobs: those come at once, and the
    next when they are done. From the first start to the last end of each.
    """
    gate.close()
    with workshop() as shop, daemon(work.url, [*shop.sets(work.workers), *work.sets]) as ours:
        _until(gate.ready)
        gate.open()

        def one(number: int) -> float:
            goal = number * burst
            fill(burst)
            _until(lambda: shop.done() >= goal)
            began, ended = zip(*shop.spans(goal - burst, goal), strict=True)
            return float(max(ended) - min(began))

        warm = max(1, work.warm // burst)
        for number in range(1, warm + 1):
            one(number)
        first = moment(shop, [ours], gate)
        bursts = range(warm + 1, warm + 1 + max(1, work.jobs // burst))
        seconds = sum(one(number) for number in bursts)
        last = moment(shop, [ours], gate)
        gate.close()
        return first.until(last, len(bursts) * burst / seconds)


def moment(shop: Workshop, daemons: Sequence[int], gate: Gate) -> Moment:
    return Moment(shop.done(), sum(used(one).cpu_seconds for one in daemons), gate.served())


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not done within {PATIENCE_SECONDS:g} s")
        time.sleep(LOOK_SECONDS)
