"""Logs of events written by hand: `log("1 enqueued", "1 started 1", "1 succeeded 1")`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from musterd.console.verify.judge import Judge
from musterd.store.events import Event

START = datetime(2030, 1, 1, 9, tzinfo=UTC)
TARGETS = {101: "a", 102: "a", 103: "a", 201: "b"}  # jobs with these ids have them
STEP_SECONDS = 1.0


def log(*lines: str, first: int = 1) -> list[Event]:
    """A line: job, type without `job.`, attempt where there is one, and `key=value`. `- ` in place
    of a job: of a node. `at=5` puts it at that second; each line is a second after the last.
    """
    return [_event(first + place, line) for place, line in enumerate(lines)]


def _event(position: int, line: str) -> Event:
    job, type_, *rest = line.split()
    data: dict[str, Any] = {}
    at = START + timedelta(seconds=position * STEP_SECONDS)
    for word in rest:
        name, _, value = word.partition("=")
        if name == "at":
            at = START + timedelta(seconds=float(value))
        elif name == "run_at":
            data[name] = (START + timedelta(seconds=float(value))).isoformat()
        else:
            data |= {name: value} if value else {"attempt": int(name)}
    if type_ in ("assigned", "started") and "node" not in data:
        data["node"] = "north"
    if job == "-":
        return Event(position, at, f"node.{type_}", None, None, None, data)
    return Event(position, at, f"job.{type_}", int(job), "report", TARGETS.get(int(job)), data)


def judged(events: Iterable[Event]) -> Judge:
    judge = Judge()
    judge.take(events)
    return judge


def broken(*lines: str, first: int = 1) -> list[tuple[str, int | None, tuple[int, ...]]]:
    """What is found in a log: rule, job, positions."""
    findings = judged(log(*lines, first=first)).findings
    return [(one.rule.value, one.job_id, one.positions) for one in findings.violations]
