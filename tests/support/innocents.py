"""Jobs that do no harm, and what became of them as seen from outside: each appends its number to a
file, and the store says how it ended.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from musterd import Client, OutcomeUnknown, StoreUnavailable
from tests.support.command import eventually

HANDLERS = """
import time

def work(job):
    time.sleep(0.02)
    with open(job.payload["file"], "a") as file:
        file.write(f"{job.payload['number']}\\n")
    return job.payload["number"]
"""
# A short lease: what a daemon or its store loses comes back soon.
KINDS = """
[kinds.work]
python = "innocent:work"
retryable = true
retry = { max_retries = 20, base_seconds = 0.1, backoff = "fixed" }
[kinds.program]
command = ["sh", "-c", "read line; echo $line; echo $line >>$INNOCENT_FILE"]
environment = ["INNOCENT_FILE"]
retryable = true
retry = { max_retries = 20, base_seconds = 0.1, backoff = "fixed" }
"""
VARIABLE = "INNOCENT_FILE"


@attrs.define
class Innocents:
    """`promised`: the number of each job by its id. `unsure`: how many may have been made."""

    url: str
    file: Path
    promised: dict[int, int] = attrs.Factory(dict[int, int])
    unsure: int = 0
    refusals: list[StoreUnavailable] = attrs.Factory(list[StoreUnavailable])
    _outcomes: dict[int, list[str]] = attrs.Factory(dict[int, list[str]])  # of those that ended
    _numbers: Iterator[int] = attrs.field(factory=lambda: iter(range(10_000_000)))
    _lock: threading.Lock = attrs.Factory(threading.Lock)

    def enqueue(self, count: int, kind: str = "work") -> None:
        """What the store does not take is kept in `refusals`."""
        with Client(self.url) as client:
            for _ in range(count):
                self._enqueue(client, kind)

    def _enqueue(self, client: Client, kind: str) -> None:
        with self._lock:
            number = next(self._numbers)
        payload: Any = number if kind == "program" else {"number": number, "file": str(self.file)}
        try:
            self.promised[client.enqueue(kind, payload)] = number
        except StoreUnavailable as error:
            self.unsure += isinstance(error, OutcomeUnknown)
            self.refusals.append(error)

    def have_ended(self, seconds: float) -> None:
        """Waits until all have; fails where one has not succeeded, or lacks its own result."""
        waiting = [job_id for job_id in self.promised if job_id not in self._outcomes]
        with Client(self.url) as client:
            eventually(lambda: all(_has_ended(client, job_id) for job_id in waiting), seconds)
            for job_id in waiting:
                job = client.job(job_id)
                assert job["state"] == "succeeded", job
                assert str(job["result"]).strip() == str(self.promised[job_id]), job
                self._outcomes[job_id] = [one["outcome"] for one in job["attempts"]]

    def count_effects(self, again: frozenset[str] = frozenset()) -> None:
        """Each job that has ended did its work: once, or again for each attempt that ended as in
        `again`.
        """
        done = Counter(int(line) for line in self.file.read_text().split())
        promised = set(self.promised.values())
        assert promised <= set(done), f"never done: {sorted(promised - set(done))}"
        assert len(set(done) - promised) <= self.unsure, "done, and nobody asked for it"
        for job_id, outcomes in self._outcomes.items():
            times = done[self.promised[job_id]]
            most = 1 + sum(outcome in again for outcome in outcomes)
            assert times <= most, f"{job_id}: done {times} times, {outcomes}"


def _has_ended(client: Client, job_id: int) -> bool:
    try:
        return client.job(job_id)["state"] in ("succeeded", "failed", "canceled")
    except StoreUnavailable:
        return False
