"""A long history that is right, line by line: for figures."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import Any

from tests.checker.examples.story import Story, ending

AT_ONCE = 200
HEADER = {"caps": {"": AT_ONCE}, "budgets": {"": 3}, "margin_seconds": 2, "lease_seconds": 30}
RECORDS = [
    *("clients", "claims", "handlers", "events", "edges", "faults", "jobs", "counts"),
]


def bulk(jobs: int, *, commits: bool) -> Iterator[str]:
    """At least 20 lines a job."""
    h = Story(commits=commits, records=RECORDS, **HEADER)
    h.step_seconds = 0.0001
    under_way: deque[int] = deque()
    yield from h.lines()
    for job in range(1, jobs + 1):
        _begin(h, job)
        under_way.append(job)
        if len(under_way) == AT_ONCE:
            _end(h, under_way.popleft())
        yield from _written(h)
    for job in under_way:
        _end(h, job)
        yield from _written(h)
    h.end()
    for job in range(1, jobs + 1):
        h.row(job, "succeeded", max_attempts=None)
        yield from _written(h)
    h.final("counts", by_state={"succeeded": jobs}, enqueued=jobs)
    yield from _written(h)


def _begin(h: Story, job: int) -> None:
    h.make(job, dedup_key=f"order-{job}")
    _step(h, job, None, "queued", "enqueued")
    _claim(h, job, 1)
    if job % 10 == 0:
        h.settle(job, f"token-{job}-1", **ending("queued"))
        _step(h, job, "running", "queued", "retrying", attempt=1)
        _claim(h, job, 2)


def _claim(h: Story, job: int, attempt: int) -> None:
    token = f"token-{job}-{attempt}"
    h.claim(job, token, attempt)
    _step(h, job, "queued", "running", "started", attempt=attempt, node="north")
    h.handler("begin", job, token, attempt)


def _end(h: Story, job: int) -> None:
    attempt = 2 if job % 10 == 0 else 1
    token = f"token-{job}-{attempt}"
    h.renew(job, token)
    h.handler("effect", job, token, attempt)
    h.handler("end", job, token, attempt, outcome="success")
    h.settle(job, token, **ending(attempt=attempt))
    _step(h, job, "running", "succeeded", "succeeded", attempt=attempt)


def _step(h: Story, job: int, before: str | None, after: str, name: str, **data: Any) -> None:
    h.event(f"job.{name}", job, **data)
    h.note("edge", job=job, to=after, **{"from": before})


def _written(h: Story) -> Iterator[str]:
    written, h.body = h.body, []
    for record in written:
        yield json.dumps(record, separators=(",", ":"))
