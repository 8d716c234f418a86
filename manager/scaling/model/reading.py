"""Reads a trace from the log of events. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from math import nan
from sys import intern
from typing import get_args

import attrs

from musterd.manager.scaling.guard import GuardLimit
from musterd.manager.scaling.model.between import TimesBetween
from musterd.manager.scaling.model.trace import NONE, LeftOut, Trace
from musterd.store.events import Event, EventFilter
from musterd.store.scaling_journal import JournalRun
from musterd.store.words import moment_of

ATTEMPTS_MAX = 1_000_000
LIVING_MAX = 1_000_000  # jobs that wait or run at the same time
TRACED = EventFilter(types=frozenset({"job", "worker", "node", "scale"}))  # what is read

WorkerKey = tuple[str, str]  # a node, and one of its workers


@attrs.define
class _Job:
    """A job that has not ended. `last` is its previous attempt."""

    due: float | None = None
    made: float = 0.0
    is_held: bool = False  # until somebody releases it
    assigned: float | None = None
    started: float | None = None
    hand: WorkerKey | None = None
    last: int = NONE
    last_end: float = 0.0

    @property
    def is_leased(self) -> bool:
        return self.started is not None or self.assigned is not None


class TraceReader:
    """Takes the events of one store in order; `trace` is the result so far."""

    def __init__(self, attempts_max: int = ATTEMPTS_MAX) -> None:
        self._attempts_max = attempts_max
        self._begun_at: datetime | None = None
        self._latest = 0.0
        self._jobs: dict[int, _Job] = {}
        self._free_since: dict[WorkerKey, float] = {}
        self._due, self._run, self._waited = array("d"), array("d"), array("d")
        self._next, self._pause = array("q"), array("d")
        self._kinds: list[str] = []
        self._targets: list[str] = []
        self._priorities, self._made = array("q"), array("d")
        self._firsts: list[tuple[float, int, int]] = []
        self._priority_of: dict[int, int] = {}  # of jobs that have one and may go on
        self._nodes = NodeTimes()
        self._between = TimesBetween()
        self._guarded: list[tuple[datetime, datetime]] = []
        self._unstarted = self._undue = 0
        self._tick: float | None = None  # the first decision that is told

    @property
    def is_full(self) -> bool:
        most = max(len(self._jobs), len(self._priority_of))
        return len(self._run) >= self._attempts_max or most >= LIVING_MAX

    def take(self, events: Iterable[Event]) -> None:
        """Ignores further events when it is full."""
        for event in events:
            if self.is_full:
                return
            now = self._seconds(event.at)
            self._latest = max(self._latest, now)
            self._nodes.note(event, now)
            taker = _TAKERS.get(event.type)
            if taker is not None and event.job_id is not None:
                taker(self, event, event.job_id, now)
            elif event.type in ("worker.retired", "worker.dismissed"):
                self._free_since.pop(_worker_key(event.data), None)
            elif event.type == "scale.decided" and self._tick is None:
                self._tick = self._decided(event)

    def take_journal(self, runs: Iterable[JournalRun]) -> None:
        """What supervisors decided in the time of these events: of that, what the guard held."""
        guarded = (one for one in runs if one.fields["limited_by"] in get_args(GuardLimit))
        self._guarded = [(one.at, one.until) for one in guarded]

    @property
    def trace(self) -> Trace | None:
        """None = the log has no attempt with both its start and its end."""
        if self._begun_at is None or not self._run:
            return None
        running = sum(job.is_leased for job in self._jobs.values())
        waiting = sum(not (job.is_leased or job.is_held) for job in self._jobs.values())
        left_out = LeftOut(running, waiting, self._unstarted, self._undue, self.is_full)
        columns = (self._due, self._run, self._waited, self._next, self._pause)
        firsts = array("q", (entry for _, _, entry in sorted(self._firsts)))
        return Trace(
            self._begun_at,
            self._latest,
            *columns,
            firsts,
            self._kinds,
            left_out,
            tick_seconds=self._tick or 0.0,
            priorities=self._priorities,
            targets=self._targets,
            made_seconds=self._made,
            nodes=self._nodes.mean_over(self._latest),
            guarded=stretches_of(self._guarded, self._begun_at),
            pick_up_seconds=self._between.pick_up_seconds,
            handover_seconds=self._between.handover_seconds,
        )

    def _seconds(self, at: datetime) -> float:
        if self._begun_at is None:
            self._begun_at = at
        return max(0.0, (at - self._begun_at).total_seconds())

    def _decided(self, event: Event) -> float | None:
        """The event itself is written a moment later. None = it does not say when."""
        try:
            return self._seconds(moment_of(str(event.data.get("at"))))
        except ValueError:
            return None

    def made(self, event: Event, job_id: int, now: float) -> None:
        due = self._due_logged(event)
        is_held = event.data.get("state") == "pending"
        self._jobs[job_id] = _Job(now if due is None else max(now, due), now, is_held)
        if priority := int(event.data.get("priority") or 0):
            self._priority_of[job_id] = priority

    def set_going(self, _event: Event, job_id: int, now: float) -> None:
        """Released or resumed."""
        job = self._jobs.get(job_id)
        due = now if job is None or job.due is None else max(now, job.due)
        self._jobs[job_id] = _Job(due, now)

    def assigned(self, _event: Event, job_id: int, now: float) -> None:
        job = self._jobs.setdefault(job_id, _Job())
        job.assigned, job.started = now, None

    def started(self, event: Event, job_id: int, now: float) -> None:
        job = self._jobs.setdefault(job_id, _Job())
        job.hand, job.started = _worker_key(event.data), now

    def over(self, event: Event, job_id: int, now: float) -> None:
        job = self._jobs.pop(job_id, None)
        if job is not None and job.started is not None:
            self._note(job, event, self._start_of(job, job.started), now)
        elif job is None or job.due is None:
            self._unstarted += 1
        if event.type in ("job.succeeded", "job.canceled"):  # any other may go on
            self._priority_of.pop(job_id, None)

    def tried_again(self, event: Event, job_id: int, now: float) -> None:
        """If it is given back before it started, it is due as before."""
        job = self._jobs.setdefault(job_id, _Job())
        if job.started is not None:
            job.last = self._note(job, event, self._start_of(job, job.started), now)
            job.last_end, job.due = now, self._due_again(event, now)
        elif job.assigned is None:
            self._unstarted += 1
            job.due = self._due_again(event, now)
        job.assigned = job.started = job.hand = None

    def gone(self, _event: Event, job_id: int, _now: float) -> None:
        self._jobs.pop(job_id, None)
        self._priority_of.pop(job_id, None)

    def _start_of(self, job: _Job, logged: float) -> float:
        """A job claimed ahead is logged late: it really began when its worker was free."""
        if job.assigned is None or job.hand is None:
            return logged
        return min(logged, max(job.assigned, self._free_since.get(job.hand, 0.0)))

    def _due_again(self, event: Event, now: float) -> float | None:
        """None = unknown."""
        if event.type == "job.requeued" and event.data.get("outcome") != "snoozed":
            return now
        logged = self._due_logged(event)
        return None if logged is None else max(now, logged)

    def _due_logged(self, event: Event) -> float | None:
        """When it says that its job is due; None = it does not."""
        try:
            return self._seconds(moment_of(str(event.data.get("run_at"))))
        except ValueError:
            return None

    def _note(self, job: _Job, event: Event, started: float, ended: float) -> int:
        """An attempt with an unknown due time is assumed not to have waited."""
        entry = len(self._run)
        due = started if job.due is None else min(job.due, started)
        self._due.append(due)
        self._run.append(max(0.0, ended - started))
        self._waited.append(nan if job.due is None else started - due)
        self._undue += job.due is None
        self._next.append(NONE)
        self._pause.append(0.0)
        self._kinds.append(intern(event.kind or ""))
        self._targets.append(intern(event.target or ""))
        self._priorities.append(self._priority_of.get(event.job_id or 0, 0))
        self._made.append(min(job.made, due))
        if job.last == NONE:
            self._firsts.append((due, event.job_id or 0, entry))
        else:
            self._next[job.last] = entry
            self._pause[job.last] = max(0.0, due - job.last_end)
        if job.hand is not None:
            free_since = self._free_since.get(job.hand)
            if free_since is not None and job.due is not None and not event.target:
                self._between.note(due, free_since, started)
            self._free_since[job.hand] = ended
        return entry


DECISION_SECONDS = 1.0  # as long as a decision holds, at least


def stretches_of(
    times: Iterable[tuple[datetime, datetime]], begun_at: datetime
) -> Sequence[tuple[float, float]]:
    """In seconds from the beginning, in order; what touches becomes one."""
    found: list[tuple[float, float]] = []
    for at, until in sorted(times):
        since = max(0.0, (at - begun_at).total_seconds())
        ends = (until - begun_at).total_seconds() + DECISION_SECONDS
        if found and since <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], ends)
        elif ends > since:
            found.append((since, ends))
    return found


NODES_MAX = 10_000  # names; each start of a daemon may have one of its own


@attrs.define
class NodeTimes:
    """When each node was there: from the first that is told of it to its end, or the last."""

    _seen: dict[str, tuple[float, float]] = attrs.field(factory=dict[str, tuple[float, float]])
    _over_seconds: float = 0.0  # of those that have stopped

    def note(self, event: Event, now: float) -> None:
        name = event.data.get("node")
        if not isinstance(name, str) or (name not in self._seen and len(self._seen) >= NODES_MAX):
            return
        since, _ = self._seen.get(name, (now, now))
        if event.type == "node.stopped":
            self._seen.pop(name, None)
            self._over_seconds += now - since
        else:
            self._seen[name] = since, now

    def mean_over(self, span_seconds: float) -> int:
        """How many were there at the same time; at least 1."""
        seconds = self._over_seconds + sum(last - since for since, last in self._seen.values())
        return max(1, round(seconds / span_seconds)) if span_seconds else 1


def _worker_key(data: Mapping[str, object]) -> WorkerKey:
    return str(data.get("node")), str(data.get("worker"))


_TAKERS: Mapping[str, Callable[[TraceReader, Event, int, float], None]] = {
    "job.enqueued": TraceReader.made,
    "job.released": TraceReader.set_going,
    "job.resumed": TraceReader.set_going,
    "job.assigned": TraceReader.assigned,
    "job.started": TraceReader.started,
    "job.retrying": TraceReader.tried_again,
    "job.requeued": TraceReader.tried_again,
    "job.succeeded": TraceReader.over,
    "job.failed": TraceReader.over,
    "job.canceled": TraceReader.over,
    "job.paused": TraceReader.over,
    "job.deleted": TraceReader.gone,
}
