"""Claims ready to be run, as a worker would hand them to a Runner."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import attrs

from musterd.catalog.kinds import Behaviour, WorkKind
from musterd.config.settings import Retry
from musterd.store.job_log import LogLine, lines_of, plain
from musterd.store.leases import Claim
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


@attrs.frozen
class Given:
    """An assignment, and what the work tells about its progress."""

    assignment: Assignment
    notes: list[Note]

    @property
    def said(self) -> str:
        """What the work wrote, without times, streams and levels."""
        return plain(self.assignment.log.text())

    @property
    def lines(self) -> list[LogLine]:
        """The same, line by line, with all that is known of each."""
        text = self.assignment.log.text()
        return [*lines_of(text)] if text else []


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
    notes: list[Note] = []
    log = JobLog(bounds, time.time)
    return Given(Assignment(claim, kind, payload, _a_while, _append(notes), _unheard, log), notes)


def _a_while() -> float:
    return 30.0


def _append(notes: list[Note]) -> Callable[[Note], None]:
    return notes.append


def _unheard(_spent: str) -> None:
    """Nobody keeps what was spent."""
