"""What is read of a node and its store while a soak goes on."""

from __future__ import annotations

import re
import statistics
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Self

import attrs
import psycopg

from tests.faults.fleet import Node

EVERY_SECONDS = 5.0
# A visit to the store claims, or settles and claims.
BUCKET = re.compile(
    r'musterd_store_operation_seconds_bucket\{le="([^"]+)",operation="(?:claim|settle)"\} (\S+)'
)
FINISHED = re.compile(r"^musterd_jobs_finished_total\{[^}]*\} (\S+)", re.MULTILINE)
STORE = """
    select pg_total_relation_size('musterd.job_rows'), (select count(*) from musterd.job_rows),
        (select count(*) from pg_stat_activity
         where application_name = 'musterd' and datname = current_database())
"""


@attrs.frozen
class Reading:
    at: float
    resident_mb: float
    files: int
    connections: int
    table_mb: float
    rows: int
    visits: Mapping[float, float]  # by the upper bound of their seconds: how many took no longer
    finished: float  # jobs, by this node


class Readings:
    """Of one node, all the while; a reading that can't be had is left out."""

    def __init__(self, node: Node, url: str) -> None:
        self.all: list[Reading] = []
        self._node = node
        self._url = url
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="readings")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            try:
                self.all.append(self._read())
            except (psycopg.Error, urllib.error.URLError, TimeoutError, ConnectionError):
                continue  # the store, or the way to it, is away

    def _read(self) -> Reading:
        folder = Path(f"/proc/{self._node.process_id}")
        resident = re.search(r"VmRSS:\s+(\d+)", (folder / "status").read_text())
        assert resident is not None
        files = sum(1 for _ in (folder / "fd").iterdir())
        with psycopg.connect(self._url, connect_timeout=3, autocommit=True) as session:
            row = session.execute(STORE).fetchone()
        assert row is not None
        with urllib.request.urlopen(f"{self._node.daemon.address}/metrics", timeout=5) as answer:
            text: str = answer.read().decode()
        return Reading(
            time.monotonic(), int(resident[1]) / 1024, files, row[2], row[0] / 2**20, row[1],
            visits_of(text), sum(map(float, FINISHED.findall(text))),
        )  # fmt: skip


def visits_of(metrics: str) -> Mapping[float, float]:
    found: dict[float, float] = {}
    for le, count in BUCKET.findall(metrics):
        found[float(le)] = found.get(float(le), 0.0) + float(count)
    return MappingProxyType(found)


def slope_a_hour(readings: Sequence[Reading]) -> float:
    """Of the resident megabytes, by least squares."""
    if len(readings) < 3:
        return 0.0
    hours = [one.at / 3600 for one in readings]
    return statistics.linear_regression(hours, [one.resident_mb for one in readings]).slope


def jobs_a_second(readings: Sequence[Reading]) -> float | None:
    """What the node has finished from the first to the last of them."""
    if len(readings) < 2:
        return None
    first, last = readings[0], readings[-1]
    return (last.finished - first.finished) / max(1e-9, last.at - first.at)


def visit_p99_ms(readings: Sequence[Reading]) -> float | None:
    """Between the first and the last of them, as a histogram tells it: within its bucket."""
    if len(readings) < 2:
        return None
    first, last = readings[0].visits, readings[-1].visits
    grown = Counter({le: count - first.get(le, 0.0) for le, count in last.items()})
    total = grown.get(float("inf"), 0.0)
    below, seen = 0.0, 0.0
    for le in sorted(grown):
        if total and grown[le] >= 0.99 * total:
            share = (0.99 * total - seen) / max(1e-9, grown[le] - seen)
            return 1000 * (below + share * (le - below)) if le != float("inf") else 1000 * below
        below, seen = le, grown[le]
    return None
