"""Hears a history, line by line: pairs calls with what came of them, tells the invariants, and
writes down in the world what is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from sys import intern
from typing import Any

from tests.checker.carrying import WRITES, Carrier
from tests.checker.facts import Op, Point, Record
from tests.checker.history import digest_of
from tests.checker.invariant import Invariant
from tests.checker.seen import Seen
from tests.checker.world import World

FINAL = {
    "final": "final",
    "final.job": "final_job",
    "final.message": "final_message",
    "final.duty": "final_duty",
    "final.schedule": "final_schedule",
    "final.counts": "final_counts",
}
PLAIN = {
    "act": "act",
    "begin": "begin",
    "effect": "effect",
    "told": "told",
    "end": "stopped",
    "edge": "edge",
    "crew": "crew",
    "delivery": "delivery",
    "process": "process",
}
NO_JOB = Seen()
ON_EVERY_LINE = frozenset({"record", "seq", "t", "id", "who", "op", "status"})
# Once these are answered nobody asks what they said: there are many of them.
SAID_ALL = frozenset({"claim", "read_back", "reap", *WRITES})
NOTHING: Record = {}


class Court:
    def __init__(self, world: World, invariants: Sequence[Invariant]) -> None:
        self.world = world
        self._open: dict[int | str, Op] = {}
        self._tell = Telling(invariants)
        self._carrier = Carrier(world, self._tell)
        self._hear: dict[str, Callable[[int, Record], None]] = {
            "call": self._call,
            "commit": self._commit,
            "reply": self._reply,
            "event": self._event,
            "fault": self._fault,
            **{name: self._plain(hook) for name, hook in {**PLAIN, **FINAL}.items()},
        }

    def hear(self, history: Iterable[tuple[int, Record]]) -> None:
        world = self.world
        for line, record in history:
            if "seq" in record:
                world.now = Point(record["seq"], record["t"])
            if record["record"] != "header":
                self._hear[record["record"]](line, record)
        for closing in self._tell.hooks("close"):
            closing()

    def _call(self, line: int, record: Record) -> None:
        asked = slim(record)
        if record["op"] == "enqueue":
            asked["digest"] = digest_of(asked)
            asked.pop("payload", None)
        op = Op(record["id"], record["op"], record["who"], asked, line, self.world.now)
        self._open[op.id] = op
        self._carrier.asked(op)
        for hook in self._tell.hooks("asked"):
            hook(op)

    def _commit(self, line: int, record: Record) -> None:
        op = self._open.get(record["id"])
        if op is None or op.applied or not self.world.commits:
            return
        op.result, op.done_line = slim(record), line
        op.lo = op.hi = self.world.now
        self._carrier.carried_out(op)

    def _reply(self, line: int, record: Record) -> None:
        op = self._open.get(record["id"])
        if op is None:
            return
        status = record["status"]
        if status == "ok" and not self.world.commits:
            op.result, op.done_line = slim(record), line
            op.lo, op.hi = op.asked, self.world.now
            self._carrier.carried_out(op)
        if status == "unknown":
            for hook in self._tell.hooks("unheard"):
                hook(op)
            return
        op.done_line = op.done_line or line
        for hook in self._tell.hooks("answered"):
            hook(op, status)
        self._carrier.answered(op, status)
        del self._open[op.id]
        if op.name in SAID_ALL:
            op.call, op.result = NOTHING, NOTHING

    def _event(self, line: int, record: Record) -> None:
        job_id = record.get("job_id")
        seen = NO_JOB
        if job_id is not None:
            seen = self.world.seen.get(job_id) or Seen(job_id)
            self.world.seen[job_id] = seen
        for hook in self._tell.hooks("event"):
            hook(line, record, seen)
        if job_id is not None:
            seen.take_in(line, record)
            job = self.world.jobs.get(job_id) if seen.target is None else None
            if job is not None and not job.maybe_lost:
                seen.target = job.target

    def _fault(self, line: int, record: Record) -> None:
        for hook in self._tell.hooks("fault"):
            hook(line, record)
        self.world.befall(record)

    def _plain(self, hook: str) -> Callable[[int, Record], None]:
        hooks = self._tell.hooks(hook)

        def tell(line: int, record: Record) -> None:
            for one in hooks:
                one(line, record)

        return tell


def slim(record: Record) -> Record:
    """What is told of this operation only: what is kept of it is kept to the end."""
    return {intern(name): record[name] for name in record if name not in ON_EVERY_LINE}


class Telling:
    """Who listens to what: only those are called that have something to do with it."""

    def __init__(self, invariants: Sequence[Invariant]) -> None:
        self._invariants = invariants
        self._hooks: dict[str, list[Callable[..., Any]]] = {}

    def hooks(self, name: str) -> list[Callable[..., Any]]:
        found = self._hooks.get(name)
        if found is None:
            found = self._hooks[name] = [
                getattr(one, name)
                for one in self._invariants
                if getattr(type(one), name) is not getattr(Invariant, name)
            ]
        return found
