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
        with Client(self.url) as client:

            def ended() -> bool:
                try:
                    return all(
                        client.job(job_id)["state"] in ("succeeded", "failed", "canceled")
                        for job_id in self.promised
                    )
                except StoreUnavailable:
                    return False

            eventually(ended, seconds)
            for job_id, number in self.promised.items():
                job = client.job(job_id)
                assert job["state"] == "succeeded", job
                assert str(job["result"]).strip() == str(number), job

    def outcomes(self) -> Counter[tuple[str, ...]]:
        with Client(self.url) as client:
            return Counter(
                tuple(one["outcome"] for one in client.job(job_id)["attempts"])
                for job_id in self.promised
            )

    def count_effects(self, again: frozenset[str] = frozenset()) -> None:
        """Each job has done its work: once, or again for each attempt that ended as in `again`."""
        done = Counter(int(line) for line in self.file.read_text().split())
        promised = set(self.promised.values())
        assert promised <= set(done), f"never done: {sorted(promised - set(done))}"
        assert len(set(done) - promised) <= self.unsure, "done, and nobody asked for it"
        with Client(self.url) as client:
            for job_id, number in self.promised.items():
                outcomes = [one["outcome"] for one in client.job(job_id)["attempts"]]
                most = 1 + sum(outcome in again for outcome in outcomes)
                assert done[number] <= most, f"{job_id}: done {done[number]} times, {outcomes}"
