"""Many histories, on several processes, each with a server of its own."""

from __future__ import annotations

import logging
import multiprocessing
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import attrs
import trio

from tests.histories.ground import grounded, prepared
from tests.histories.plan import draw
from tests.histories.running import Result, run
from tests.support.postgres_server import PostgresServer

AT_ONCE = 20  # histories on one database

_stack = ExitStack()  # of a process: it ends with it
_server: list[PostgresServer] = []


def begin() -> None:
    """A server of this process, which its guard takes away when the process ends."""
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # it tells of each pipeline that was cut
    _server.append(_stack.enter_context(prepared(_stack.enter_context(PostgresServer()))))


def end() -> None:
    _server.clear()
    _stack.close()


def results_of(seeds: Sequence[int]) -> list[Result]:
    """On one database of this process's server."""

    async def go() -> list[Result]:
        async with grounded(_server[0]) as ground:
            return [await run(ground, draw(seed)) for seed in seeds]

    return trio.run(go)


def results(seeds: Sequence[int], jobs: int) -> Iterator[Result]:
    """In the order of the seeds."""
    parts = [seeds[first : first + AT_ONCE] for first in range(0, len(seeds), AT_ONCE)]
    if jobs <= 1:
        begin()
        try:
            yield from chain.from_iterable(map(results_of, parts))
        finally:
            end()
        return
    with multiprocessing.get_context("spawn").Pool(jobs, begin) as pool:
        yield from chain.from_iterable(pool.imap(results_of, parts))


@attrs.define
class Tally:
    """What a batch has come to. What failed is kept in `folder`."""

    folder: Path
    histories: int = 0
    operations: int = 0
    jobs: int = 0
    met: Counter[str] = attrs.field(factory=Counter[str])
    failed: list[Result] = attrs.field(factory=list[Result])

    def add(self, result: Result) -> None:
        self.histories += 1
        self.operations += result.operations
        self.jobs += result.jobs
        self.met += result.met
        if result.violated:
            self.failed.append(result)
            self.folder.mkdir(parents=True, exist_ok=True)
            self.file(result).write_text("\n".join(result.lines) + "\n", encoding="utf-8")

    def file(self, result: Result) -> Path:
        return self.folder / f"history-{result.seed}.jsonl"

    def told(self, result: Result) -> str:
        """For people."""
        ids = " ".join(result.violated)
        again = f"  judge it again: python -m tests.checker {self.file(result)}"
        return f"seed {result.seed}: {ids}\n{result.story}\n{again}"

    def summary(self) -> str:
        met = ", ".join(f"{count} x {what}" for what, count in sorted(self.met.items()))
        counts = f"{self.operations:,} operations, {self.jobs:,} jobs"
        return f"{self.histories:,} histories, {len(self.failed)} violated; {counts}; {met}"
