"""Records what happens to jobs, in the transaction in which it does, and makes the messages of
their ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from musterd.store.events import EVENTS_A_ROW_MAX, TEXT_LENGTH_MAX
from musterd.store.leases import Claim, ProgressNote
from musterd.store.lifecycle import ENDED, AttemptOutcome, JobState, Request
from musterd.store.phases import rounded
from musterd.store.sqlite import rows
from musterd.store.sqlite.database import Database
from musterd.store.words import time_text

GONE = "the receiver answered 410 earlier: nothing is sent there until somebody sends again"
# What comes first where several things happen to a job in one step; all else lies in between.
FIRST = ("job.started", "job.progress", "job.phase_completed")
LAST = "job.webhook_failed"

LOST = "its lease was lost"

Data = Mapping[str, Any]
_compact = json.JSONEncoder(separators=(",", ":")).encode


class Held(NamedTuple):
    """A leased job before something is written about it."""

    id: int
    kind: str
    target: str | None
    attempt: int
    state: JobState
    node: str
    worker: int | None
    request: Request | None
    webhook: str | None


class About(NamedTuple):
    """Which job an event is about. Without an attempt it names none."""

    id: int
    kind: str
    target: str | None
    attempt: int | None = None


@attrs.define(eq=False)
class JobEvents:
    """Gathers the events of one step within a write transaction: at most one of each type for each
    job. `write` keeps them.
    """

    database: Database
    now: int
    # By type, and by what their data have in common (JSON).
    _recorded: dict[tuple[str, str | None], list[tuple[Any, ...]]] = attrs.field(
        factory=dict[tuple[str, "str | None"], list[tuple[Any, ...]]], init=False
    )
    _called: frozenset[str] | None = attrs.field(default=None, init=False)

    def record(self, type_: str, about: About, data: Data | None = None) -> None:
        self._recorded.setdefault((type_, None), []).append((*about, data))

    def record_all(self, type_: str, events: Iterable[tuple[Any, ...]]) -> None:
        """Of many jobs at once: each as the fields of `About`, then its data."""
        self._recorded.setdefault((type_, None), []).extend(events)

    def record_alike(
        self, type_: str, abouts: Iterable[tuple[Any, ...]], common: Data | None = None
    ) -> None:
        """Of many jobs the same, which is said once."""
        key = type_, None if common is None else _compact(common)
        self._recorded.setdefault(key, []).extend([(*about, None) for about in abouts])

    @property
    def called_kinds(self) -> frozenset[str]:
        """The kinds whose jobs' ends somebody wants to be told; '' stands for all."""
        if self._called is None:
            self._called = frozenset(row[0] for row in self.database.rows("called_kinds"))
        return self._called

    def write(self) -> None:
        for (type_, common), rows_ in sorted(self._recorded.items(), key=_rank):
            for first in range(0, len(rows_), EVENTS_A_ROW_MAX):
                part = rows_[first : first + EVENTS_A_ROW_MAX]
                what = {"jobs": _compact(part), "common": common}
                log_row(self.database, self.now, type_, len(part), what)
        self._recorded.clear()


def log_row(database: Database, now: int, type_: str, size: int, what: rows.Params) -> None:
    row = {"now": now, "type": type_, "size": size, "jobs": None, "common": None}
    database.execute("log_events", {**row, **what})


def held(database: Database, fence: rows.Params) -> Held | None:
    """The job, if it is leased under the token."""
    found = database.rows("held", fence)
    return Held._make(found[0]) if found else None


def record_new(events: JobEvents, about: About, row: rows.Params, priority: int) -> None:
    """Says what is out of the ordinary: that it is held, not due yet, or has a priority."""
    data: dict[str, object] = {}
    if row["state"] == JobState.PENDING:
        data["state"] = JobState.PENDING.value
    if row["run_at"] > events.now:
        data["run_at"] = time_text(rows.moment(row["run_at"]))
    if priority:
        data["priority"] = priority
    events.record("job.enqueued", about, data or None)


def record_claims(events: JobEvents, claims: Sequence[Claim], node: str) -> None:
    abouts = [(one.id, one.kind, one.target, one.attempt) for one in claims]
    seated = sum(one.worker is not None for one in claims)  # they come first
    starts = zip(abouts[:seated], claims, strict=False)
    events.record_all(
        "job.started", ((*about, {"node": node, "worker": one.worker}) for about, one in starts)
    )
    events.record_alike("job.assigned", abouts[seated:], {"node": node, "worker": None})
    events.write()


def record_start(events: JobEvents, job: Held, worker: int | None) -> None:
    """Of a job that started before the store heard of it."""
    started = {"node": job.node, "worker": job.worker if worker is None else worker}
    events.record("job.started", About(*job[:4]), started)


def record_end(events: JobEvents, job: Held, ending: rows.Params, run_at: int) -> None:
    """How an attempt ended, and before it what had not been told of it. `ending` has become true:
    its state is what the job is in now.
    """
    about, state = About(*job[:4]), JobState(ending["state"])
    if job.state == JobState.ASSIGNED and ending["started_at"] is not None:
        record_start(events, job, ending["worker"])
    if ending["percent"] is not None:
        far = (ending[name] for name in ("percent", "phase", "phase_percent", "note"))
        events.record("job.progress", About(*job[:3]), progress(*far))
    type_, data = _end(state, ending, run_at)
    events.record(type_, about, data)
    if state in ENDED:
        call_out(events, about, type_, job.webhook)


def record_progress(events: JobEvents, job: Held, note: ProgressNote) -> None:
    if note.percent is not None:
        data = progress(note.percent, note.phase, note.phase_percent, note.note)
        events.record("job.progress", About(*job[:3]), data)


def call_out(events: JobEvents, about: About, type_: str, url: str | None) -> None:
    """Makes the message of a job's end, if somebody wants it."""
    if url is None and events.called_kinds.isdisjoint((about.kind, "")):
        return
    wanted = {
        "job_id": about.id,
        "kind": about.kind,
        "attempt": about.attempt or 0,
        "type": type_,
        "url": url,
        "now": events.now,
        "gone": GONE,
    }
    for called, state in events.database.rows("call_out", wanted):
        if state == "failed":
            failed = {"url": called, "attempts": 0, "error": GONE}
            events.record(LAST, about._replace(attempt=None), failed)


def progress(
    percent: float, phase: str | None, phase_percent: float | None, note: str | None
) -> Data:
    """`percent` is the job's, `phase_percent` that of the phase it is in."""
    own = percent if phase_percent is None else phase_percent
    return {"overall": rounded(percent), "phase": phase, "progress": own, "note": note}


def _end(state: JobState, ending: rows.Params, run_at: int) -> tuple[str, Data | None]:
    error, reason = _short_error(ending["error"]), _short(ending["reason"])
    if state is JobState.SUCCEEDED:
        return "job.succeeded", None
    if state is JobState.FAILED:
        return "job.failed", {"error": error}
    if state is not JobState.QUEUED:
        return f"job.{state}", {"reason": reason}
    if ending["outcome"] == AttemptOutcome.RETRYING:
        return "job.retrying", {"error": error, "run_at": time_text(rows.moment(run_at))}
    if ending["outcome"] == AttemptOutcome.LOST:
        reason = LOST
    data = {"outcome": ending["outcome"], "reason": reason}
    if ending["outcome"] == AttemptOutcome.SNOOZED:
        data["run_at"] = time_text(rows.moment(run_at))
    return "job.requeued", data


def _short_error(text: str | None) -> Any:
    if text is None or len(text) <= TEXT_LENGTH_MAX:
        return None if text is None else json.loads(text)
    error = json.loads(text)
    return {**error, "message": _short(error["message"])}


def _short(text: str | None) -> str | None:
    return None if text is None else text[:TEXT_LENGTH_MAX]


def _rank(recorded: tuple[tuple[str, str | None], object]) -> int:
    (type_, _), _ = recorded
    if type_ in FIRST:
        return FIRST.index(type_)
    return len(FIRST) + (type_ == LAST)
