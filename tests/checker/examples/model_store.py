"""A queue as the pages for users describe it, in memory: the store of the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.checker.writing import History, stamp

ENDED = frozenset({"succeeded", "failed", "canceled"})
LEASED = frozenset({"assigned", "running"})
BUDGET, LEASE_SECONDS, KEEP_SECONDS = 3, 10.0, 60.0
CAPS = {"": 9, "capped": 2}
Told = dict[str, Any]


@dataclass(slots=True)
class Row:
    id: int
    kind: str
    number: int
    state: str
    due: float
    target: str | None = None
    priority: int = 0
    attempt: int = 0
    used: int = 0
    token: str = ""
    node: str = ""
    expires: float = 0.0
    request: str | None = None
    has_target: bool = False
    cleared: bool = False
    ended_at: float = 0.0


@dataclass
class Store:
    """Each method is one transaction, now. What happened is told as events and edges."""

    history: History
    rows: dict[int, Row] = field(default_factory=dict[int, Row])
    messages: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    keys: dict[str, int] = field(default_factory=dict[str, int])
    paused: bool = False
    made: int = 0
    term: tuple[str, str, float] = ("", "", 0.0)  # of the one duty: node, term, until when
    fired: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def now(self) -> float:
        return self.history.t

    def enqueue(self, number: int, **options: Any) -> Told:
        key = options.get("dedup_key")
        holder = self.rows.get(self.keys.get(key or "", 0))
        if holder is not None and holder.state not in ENDED:
            return {"job": holder.id, "new": False}
        self.made += 1
        state = "pending" if options.get("hold") else "queued"
        due = self.now + options.get("delay_seconds", 0.0)
        kind, target = options["kind"], options.get("target")
        row = Row(self.made, kind, number, state, due, target, options.get("priority", 0))
        self.rows[row.id] = row
        if key:
            self.keys[key] = row.id
        self._tell("enqueued", row, **({"state": state} if state == "pending" else {}))
        self.history.note("edge", job=row.id, to=state, **{"from": None})
        return {"job": row.id}

    def claim(self, node: str, token: str, count: int) -> Told:
        taken: list[Row] = []
        waiting = [row for row in self.rows.values() if row.state == "queued"]
        for row in sorted(waiting, key=lambda row: (-row.priority, row.due, row.id)):
            if len(taken) < count and self._may_run(row):
                self._take(row, node, token)
                taken.append(row)
        return {"jobs": [{"job": row.id, "attempt": row.attempt} for row in taken]}

    def leased(self, token: str) -> Told:
        mine = [row for row in self.rows.values() if row.token == token and row.state in LEASED]
        return {"jobs": [{"job": row.id, "attempt": row.attempt} for row in mine]}

    def renew(self, job: int, token: str) -> Told | None:
        row = self._held(job, token)
        if row is None:
            return None
        row.expires = self.now + LEASE_SECONDS
        return {"asked": row.request} if row.request else {}

    def settle(self, job: int, token: str, end: Told) -> Told | None:
        row = self._held(job, token)
        if row is None:
            return None
        state = end["state"]
        if row.request and state in {"queued", "paused"}:
            state = "canceled" if row.request == "cancel" else "paused"
        self._end(row, state, end["outcome"], bool(end.get("forgive")))
        if state == "queued" and "delay_seconds" in end:
            row.due = self.now + end["delay_seconds"]
        return {"state": state}

    def reap(self) -> Told:
        jobs: list[Told] = []
        for row in self.rows.values():
            if row.state in LEASED and row.expires <= self.now:
                state = "failed" if row.used >= BUDGET else "queued"
                if row.request:
                    state = "canceled" if row.request == "cancel" else "paused"
                jobs.append({"job": row.id, "attempt": row.attempt, "state": state})
                self._end(row, state, "lost", False)
        return {"jobs": jobs}

    def control(self, op: str, job: int) -> Told | None:
        row = self.rows.get(job)
        if row is None:
            return None
        if op in {"cancel", "pause"} and row.state in LEASED:
            row.request = "cancel" if "cancel" in {op, row.request} else op
            return {"state": row.state, "asked": True}
        steps = {
            **{("cancel", state): "canceled" for state in ("pending", "queued", "paused")},
            ("pause", "queued"): "paused",
            **{("resume", state): "queued" for state in ("paused", "failed")},
            ("release", "pending"): "queued",
            ("clear", "paused"): "canceled",
        }
        if (op, row.state) == ("clear", "failed"):
            row.cleared = True
            self._tell("cleared", row)
            return {"state": "failed"}
        after = steps.get((op, row.state))
        if after is None:
            return None
        if op == "resume":
            row.used, row.due, row.cleared = 0, self.now, False
        names = {"canceled": "canceled", "paused": "paused"}
        self._move(row, after, names.get(after, "resumed" if op == "resume" else "released"))
        return {"state": after, "asked": False}

    def delete(self) -> Told:
        old = [
            row
            for row in self.rows.values()
            if row.state in ENDED and self.now - row.ended_at > KEEP_SECONDS and not halts(row)
        ]
        for row in old:
            self._tell("deleted", row, state=row.state)
            del self.rows[row.id]
        return {"jobs": [row.id for row in old]}

    def take_duty(self, node: str, term: str) -> Told | None:
        if self.term[1] and self.term[2] > self.now:
            return None
        self.term = (node, term, self.now + LEASE_SECONDS)
        return {}

    def renew_duty(self, term: str) -> Told | None:
        if self.term[1] != term:
            return None
        self.term = (self.term[0], term, self.now + LEASE_SECONDS)
        return {}

    def fire(self, slot: str, number: int) -> Told | None:
        if slot in self.fired:
            return None
        told = self.enqueue(number, kind="report")
        self.fired[slot] = told["job"]
        return told

    def _may_run(self, row: Row) -> bool:
        leased = [one for one in self.rows.values() if one.state in LEASED]
        if row.due > self.now or self.paused or len(leased) >= CAPS[""]:
            return False
        cap = CAPS.get(row.kind)
        if cap is not None and sum(one.kind == row.kind for one in leased) >= cap:
            return False
        if row.target is None:
            return True
        mates = [one for one in self.rows.values() if one.target == row.target and one is not row]
        if any(one.state in LEASED or (one.has_target and one.state == "queued") for one in mates):
            return False
        if row.has_target:
            return True
        first = [one for one in mates if one.state == "queued" and one.due <= self.now]
        rank = (-row.priority, row.due, row.id)
        return not any(halts(one) for one in mates) and not any(
            (-one.priority, one.due, one.id) < rank for one in first
        )

    def _take(self, row: Row, node: str, token: str) -> None:
        row.attempt += 1
        row.used += 1
        row.token, row.node, row.has_target = token, node, row.target is not None
        row.expires = self.now + LEASE_SECONDS
        self._move(row, "running", "started", attempt=row.attempt, node=node)

    def _held(self, job: int, token: str) -> Row | None:
        row = self.rows.get(job)
        return row if row and row.state in LEASED and row.token == token else None

    def _end(self, row: Row, state: str, outcome: str, forgiven: bool) -> None:
        row.used -= forgiven
        name, more = state, {}
        if state == "queued":
            name = "retrying" if outcome == "retrying" else "requeued"
            more = {"outcome": outcome} if name == "requeued" else {}
        row.request, row.token = None, ""
        self._move(row, state, name, attempt=row.attempt, **more)

    def _move(self, row: Row, state: str, name: str, **data: Any) -> None:
        before, row.state = row.state, state
        self._tell(name, row, **data)
        self.history.note("edge", job=row.id, to=state, **{"from": before})
        if state in ENDED:
            row.ended_at, row.has_target, row.request = self.now, False, None
            self.messages.append((row.id, f"job.{state}"))

    def _tell(self, name: str, row: Row, **data: Any) -> None:
        self.history.event(f"job.{name}", row.id, target=row.target, **data)
        self.history.body[-1]["kind"] = row.kind

    def write_final(self) -> None:
        history = self.history
        history.end(queue_paused=self.paused)
        counts: dict[str, int] = {}
        for row in self.rows.values():
            counts[row.state] = counts.get(row.state, 0) + 1
            history.final(
                "job",
                id=row.id,
                state=row.state,
                payload={"number": row.number},
                kind=row.kind,
                target=row.target,
                run_at=stamp(row.due),
                cleared_at=stamp(0) if row.cleared else None,
            )
        for number, (job, type_) in enumerate(self.messages):
            told = {"webhook_id": f"m{number}", "job_id": job, "type": type_}
            history.final("message", **told, state="delivered", attempts=1)
        history.final("counts", by_state=counts, enqueued=self.made)
        history.final("schedule", name="nightly", fired=len(self.fired))


def halts(row: Row) -> bool:
    if row.target is None:
        return False
    return row.state == "paused" or (row.state == "failed" and not row.cleared)
