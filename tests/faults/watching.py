"""Reads along in the file that handlers append to: who works on what at this moment."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

LOOK_SECONDS = 0.02


class Watch:
    """`ended`: how many attempts have come to their end by themselves."""

    def __init__(self, witness: Path) -> None:
        self.ended = 0
        self._running: dict[int, tuple[str, int]] = {}  # by job: node and attempt, the latest
        self._path = witness
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch")

    def __enter__(self) -> Self:
        self._path.touch()
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._leaving.set()
        self._thread.join()

    def is_busy(self, node: str) -> bool:
        return any(where == node for where, _ in list(self._running.values()))

    def _run(self) -> None:
        rest = ""
        with self._path.open(encoding="utf-8") as lines:
            while not self._leaving.wait(LOOK_SECONDS):
                text = rest + lines.read()
                *whole, rest = text.split("\n")
                for line in whole:
                    self._take_in(line)

    def _take_in(self, line: str) -> None:
        if '"effect"' in line:
            return
        record = json.loads(line)
        node = record["who"].removeprefix("node:")
        job, attempt = record["job"], (node, record["attempt"])
        if record["record"] == "begin":
            self._running[job] = attempt
        elif record["record"] == "end":
            self.ended += 1
            if self._running.get(job) == attempt:
                del self._running[job]


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether it came true in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
