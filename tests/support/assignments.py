"""Claims ready to be run, as a worker would hand them to a Runner."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import attrs

from musterd.catalog.kinds import Behaviour, WorkKind
from musterd.config.settings import Retry
from musterd.store.job_log import LogLine, lines_of, plain
from musterd.store.leases import Claim
from musterd.testing.handlers import KeepingRecorder
from musterd.workers.joblog import JobLog, LogBounds
from musterd.workers.outcome import Assignment, Note

TOKEN = UUID("0123456789abcdef0123456789abcdef")
BOUNDS = LogBounds(bytes_max=65_536, lines_max=5_000)
RETRY = Retry(3, "exponential", 1.0, 2.0, 300.0, "none")


# What a kind has that says nothing of it.
KIND_DEFAULTS: Mapping[str, Any] = {
    "retryable": False,
    "retry": RETRY,
    "time_limit_seconds": None,
    "priority": 0,
    "on_lease_lost": "requeue",
    "source": "test:1",
}


class Heard:
    """What the work of the last job told."""

    told: KeepingRecorder

    @property
    def said(self) -> str:
        """What it wrote, without times, streams and levels."""
        return plain(self.told.log.text())

    @property
    def lines(self) -> list[LogLine]:
        """The same, line by line, with all that is known of each."""
        text = self.told.log.text()
        return [*lines_of(text)] if text else []


@attrs.frozen
class Given(Heard):
    """An assignment, and what its work tells."""

    assignment: Assignment
    told: KeepingRecorder

    @property
    def notes(self) -> list[Note]:
        return self.told.notes

    def with_claim(self, **fields: Any) -> Given:
        claim = self.assignment.claim._replace(**fields)
        return Given(self.assignment._replace(claim=claim), self.told)


def given(
    behaviour: Behaviour,
    payload: Any = None,
    *,
    attempt: int = 1,
    bounds: LogBounds = BOUNDS,
    **of_kind: Any,
) -> Given:
    """A claim of job 7. `of_kind`: what the kind has other than the defaults."""
    kind = WorkKind(name="tested", behaviour=behaviour, **{**KIND_DEFAULTS, **of_kind})
    payload = {} if payload is None else payload
    text = json.dumps(payload)
    claim = Claim(7, kind.name, text, attempt, None, 0, 0.0, 1, TOKEN)
    told = KeepingRecorder(JobLog(bounds, time.time), 30.0)
    return Given(Assignment(claim, kind, payload, told), told)
