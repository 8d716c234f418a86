"""Writes histories: what a recorder does, and what examples are made with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.checker.facts import Record
from tests.checker.history import FORMAT

START = datetime(2030, 1, 1, tzinfo=UTC)
_TO_JSON = json.JSONEncoder(separators=(",", ":"))
STEP_SECONDS = 0.01  # from line to line, if nobody waits

_CLIENTS = ("enqueue", "cancel", "pause", "resume", "release", "clear")
_CLAIMS = ("claim", "read_back", "renew", "start", "progress", "phase", "settle", "give_back")
OF_OPERATION = {
    **dict.fromkeys((*_CLIENTS, "pause_queue", "resume_queue"), "clients"),
    **dict.fromkeys((*_CLAIMS, "reap", "take_over"), "claims"),
    **dict.fromkeys(("take_duty", "renew_duty", "release_duty"), "duties"),
    "fire": "schedules",
    **dict.fromkeys(("take_messages", "settle_message"), "outbox"),
    "delete": "retention",
}
OF_RECORD = {
    "act": "duties",
    **dict.fromkeys(("begin", "effect", "told", "end"), "handlers"),
    "event": "events",
    "edge": "edges",
    "process": "processes",
    "crew": "crews",
    "delivery": "deliveries",
    "final.job": "jobs",
    "final.message": "messages",
    "final.duty": "duty_rows",
    "final.schedule": "schedule_rows",
    "final.counts": "counts",
}


class History:
    """Lines in the order in which they are added, on a clock that its owner moves.

    Evidence is declared for what was written, unless `records` says what is there. Without
    `commits` none is written, so one story can be told with and without.
    """

    step_seconds = STEP_SECONDS

    def __init__(self, *, commits: bool = False, **header: Any) -> None:
        self.commits = commits
        self.header: Record = {"record": "header", "format": FORMAT, "commits": commits, **header}
        self.body: list[Record] = []
        self.t = 0.0
        self._seq: int = 0
        self._ids: int = 0
        self._position = 0
        self._calls: dict[int, Record] = {}
        self._committed: set[int] = set()

    def wait(self, seconds: float) -> None:
        self.t += seconds

    def note(self, record: str, **fields: Any) -> None:
        """A line with its place in the order."""
        self._seq += 1
        self.t = round(self.t + self.step_seconds, 6)
        self.body.append({"record": record, "seq": self._seq, "t": self.t, **fields})

    def call(self, op: str, who: str, **asked: Any) -> int:
        self._ids += 1
        self.note("call", id=self._ids, who=who, op=op, **asked)
        self._calls[self._ids] = self.body[-1]
        return self._ids

    def commit(self, call: int, **result: Any) -> None:
        if self.commits:
            self._committed.add(call)
            self.note("commit", id=call, **result)

    def reply(self, call: int, status: str = "ok", **result: Any) -> None:
        if (
            status == "ok"
            and call not in self._committed
            and self._calls[call]["op"] != "read_back"
        ):
            self.commit(call, **result)
        self.note("reply", id=call, status=status, **result)

    def do(self, op: str, who: str, result: Mapping[str, Any] | None = None, **asked: Any) -> int:
        """Asked for, carried out and answered at once."""
        call = self.call(op, who, **asked)
        self.reply(call, **(result or {}))
        return call

    def event(self, type_: str, job: int | None, *, target: str | None = None, **data: Any) -> None:
        """`at` in `data` is the event's own time, in seconds since the start; else it is now."""
        self._position += 1
        self.t = round(self.t + self.step_seconds, 6)
        at = data.pop("at", self.t)
        event = {"id": self._position, "at": stamp(at), "type": type_, "job_id": job}
        kind = "report" if job is not None else None
        self.body.append({"record": "event", **event, "kind": kind, "target": target, "data": data})

    def end(self, **fields: Any) -> None:
        self.body.append({"record": "final", "at": stamp(self.t), **fields})

    def final(self, what: str, **fields: Any) -> None:
        self.body.append({"record": f"final.{what}", **fields})

    def lines(self) -> list[str]:
        declared = self.header.get("records")
        records = sorted(self.written()) if declared is None else declared
        return to_lines([{**self.header, "records": records}, *self.body])

    def written(self) -> set[str]:
        """The evidence that is here. That there were no faults is evidence, too."""
        found = {"faults"}
        for record in self.body:
            name = OF_RECORD.get(record["record"])
            if record["record"] == "call":
                name = OF_OPERATION[record["op"]]
            if name is not None:
                found.add(name)
        return found


def stamp(seconds: float) -> str:
    """On the store's clock."""
    return (START + timedelta(seconds=seconds)).isoformat()


def to_lines(records: Iterable[Record]) -> list[str]:
    return [_TO_JSON.encode(record) for record in records]
