"""Runs simulations, or histories of PostgreSQL, on a copy of the tree, and says which seed was the
first to notice something.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

from tests.mutants.mutant import Edit, Mutant
from tests.mutants.tree import copied, start

SILENT_SECONDS = 300.0  # a simulation bounds itself: one that says nothing for so long has hung
HOLDS, VIOLATED = 0, 1  # how it ends; also violated: what all seeds together should have met
SHOWN_LINES = 20  # of what a simulation said that ended in a way that it must not


class NotRun(Exception):
    """The simulation did not come to a verdict."""


@attrs.frozen
class Finding:
    """`seeds` were tried, in their order; `seed` was the last, and violated these invariants.
    None = no seed violated anything.
    """

    seeds: int
    seed: int | None
    violated: frozenset[str]
    seconds: float

    def catches(self, mutant: Mutant) -> bool:
        return bool(self.violated & mutant.fires)


def try_out(edits: Iterable[Edit], first: int, count: int) -> Finding:
    """Simulates seed after seed, until one violates something. Raises NotRun."""
    return _tried(edits, "tests.simulation", "--seeds", f"{first}:{count}")


def try_histories(edits: Iterable[Edit], first: int, count: int) -> Finding:
    """The same with histories of PostgreSQL."""
    return _tried(edits, "tests.histories", "--first", str(first), "--count", str(count))


def _tried(edits: Iterable[Edit], *words: str) -> Finding:
    started = time.monotonic()
    with copied(edits) as tree:
        ran = _run(tree, words)
    seed, violated = None, frozenset[str]()
    if ran and ran[-1]["violated"]:
        seed, violated = ran[-1]["seed"], frozenset[str](ran[-1]["violated"])
    return Finding(len(ran), seed, violated, time.monotonic() - started)


def _run(tree: Path, words: Sequence[str]) -> list[dict[str, Any]]:
    with start(tree, "-m", *words, "--jobs", "1", "--stop-at-first", "--json") as process:
        try:
            said = list(_lines(process))
            code = process.wait(SILENT_SECONDS)
        finally:
            process.kill()
    ran: list[dict[str, Any]] = [json.loads(line) for line in said if line.startswith("{")]
    if code not in {HOLDS, VIOLATED} or not ran:
        raise NotRun(f"{' '.join(words)}: it ended with {code}\n{''.join(said[-SHOWN_LINES:])}")
    return ran


def _lines(process: subprocess.Popen[str]) -> Iterable[str]:
    """What it says. One that has been silent for too long is killed."""
    assert process.stdout is not None
    while True:
        alarm = threading.Timer(SILENT_SECONDS, process.kill)
        alarm.start()
        try:
            line = process.stdout.readline()
        finally:
            alarm.cancel()
        if not line:
            return
        yield line
