"""A worker's life: take a claim from the desk, run it under its time limit and its lease, hand its
end back, until told to leave. What a kind does wrong becomes an Outcome; only a cancel gets out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

import attrs
import trio

from musterd.catalog.kinds import JSON, Catalog, Deterministic, Pipeline, WorkKind
from musterd.config.settings import LiveSettings
from musterd.store.input import PayloadInvalid, decode_payload
from musterd.store.leases import Verdict
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.held import UNREAD, Held, Seat
from musterd.workers.joblog import JobLog
from musterd.workers.outcome import (
    Assignment,
    Contained,
    Note,
    Outcome,
    Recorder,
    broken_kind,
    interrupted,
    judge,
    line_of,
    on_request,
    requested,
    unknown_kind,
)
from musterd.workers.pipeline import run_phases, runs_in_thread
from musterd.workers.progress import PhaseBook
from musterd.workers.toolbox import Toolbox, at_once

# Runs a claim: `attempt`, or what goes around it.
Attempt: TypeAlias = Callable[[Held, WorkKind, Toolbox, PhaseBook], Awaitable[Outcome | None]]
JOBS_A_LOOK = 16  # jobs that never wait, until it is asked whether the turn is over


@attrs.frozen
class WorkerDeps:
    """What a worker needs to know beyond its claim. It is asked for with each job, so that a reload
    reaches it.
    """

    catalog: Callable[[], Catalog]
    settings: LiveSettings
    make_box: Callable[[trio.Nursery], Toolbox]  # called once by each worker, with its nursery
    phases: PhaseBook
    attempt: Attempt


async def work(seat: Seat, desk: Desk, deps: WorkerDeps) -> None:
    """A worker is a nursery: opened when it is hired, closed when it leaves, and whatever it starts
    for its jobs lives in there. Returns when the seat was retired. Cancelled (dismissed) it gives
    its job back before it goes.
    """
    async with trio.open_nursery() as nursery:
        box = deps.make_box(nursery)
        try:
            with box.bounds.kept():
                await _serve_all(seat, desk, deps, box)
        finally:
            await box.close()  # noqa: ASYNC102 - which is shielded, and bounded


async def _serve_all(seat: Seat, desk: Desk, deps: WorkerDeps, box: Toolbox) -> None:
    jobs = 0
    held = desk.take(seat)
    while held or (held := await desk.wait_for_claim(seat)):
        await _serve(seat, held, desk, deps, box)
        jobs += 1
        held = desk.take(seat) if jobs % JOBS_A_LOOK else await desk.take_turns(seat)


async def _serve(seat: Seat, held: Held, desk: Desk, deps: WorkerDeps, box: Toolbox) -> None:
    if held.started_late:
        # Its reply came late, or this process was stopped: by now the job may be another's.
        desk.lose(held)
        desk.drop(seat, held)
        return
    kind = deps.catalog().find(held.claim.kind)
    verdict = _without_work(held, kind)
    try:
        if verdict is None and kind is not None:
            if box.is_outdated:
                box.renew()
            verdict = await _verdict(held, kind, deps, box)
    except trio.Cancelled:
        if held.lost:
            desk.drop(seat, held)
        else:
            verdict = interrupted(deps.settings.now.shutdown.interrupted)
            desk.settle(seat, held, held.with_progress(verdict))
            desk.interrupted.append(held.claim.id)
        raise
    if verdict is None:
        desk.drop(seat, held)
    else:
        desk.settle(seat, held, held.with_progress(verdict))


def _without_work(held: Held, kind: WorkKind | None) -> Verdict | None:
    """The end of a job that is not to begin, or cannot; None = it can."""
    if held.request is not None:
        return requested(held.request)
    if kind is None:
        return unknown_kind(held.claim)
    if kind.broken is not None:
        return broken_kind(held.claim, kind.broken)
    return None


async def _verdict(held: Held, kind: WorkKind, deps: WorkerDeps, box: Toolbox) -> Verdict | None:
    """Runs the claim and judges its end. None = its lease was lost on the way.

    A fault of ours in there costs this attempt, and neither the worker nor the daemon: the next
    daemon would meet the same job.
    """
    bytes_max = deps.settings.now.limits.max_error_bytes
    try:
        outcome = await deps.attempt(held, kind, box, deps.phases)
        if held.has_spoken and held.has_news:
            with trio.CancelScope(shield=True):  # which is bounded: the work is done
                await deps.phases.notes.last_word(held)
        if outcome is None or held.lost:
            return None
        return judge(outcome, held.claim, held.judged_by or kind, bytes_max)
    except Exception as error:  # noqa: BLE001 - told below
        _contain(error, held, box)
        outcome = Outcome("failure", None, "internal_error", line_of(error), kind.retryable)
        return None if held.lost else judge(outcome, held.claim, kind, bytes_max)
    except BaseExceptionGroup as group:  # of a nursery that met a fault while it was cancelled
        _, rest = group.split(trio.Cancelled)
        if isinstance(rest, Exception):
            _contain(rest, held, box)
            # Raises the cancel alone.
            await trio.lowlevel.checkpoint_if_cancelled()  # noqa: ASYNC120
        raise


def _contain(error: Exception, held: Held, box: Toolbox) -> None:
    claim = held.claim
    box.tools.contained(Contained("attempt", claim.kind, claim.id, error, claim.attempt))


async def attempt(held: Held, kind: WorkKind, box: Toolbox, phases: PhaseBook) -> Outcome | None:
    """Runs the claim. None = its lease was lost on the way: nothing may be written for it."""
    claim = held.claim
    try:
        known = held.payload
        payload: JSON = known
        if known is UNREAD:
            payload = cast(JSON, decode_payload(claim.payload))
        outcome = None
        if isinstance(kind.behaviour, Deterministic):
            outcome = at_once(kind, payload, claim)
    except PayloadInvalid as error:
        return Outcome("failure", None, "payload_invalid", str(error))
    except RecursionError:  # it could be parsed, but not be walked through
        return Outcome("failure", None, "payload_invalid", "payload: found nesting too deep")
    if outcome is not None:
        return outcome
    recorder = _HeldRecorder(held, phases, box.tools.boottime)
    return await _within_limits(held, Assignment(claim, kind, payload, recorder), box, phases)


class _HeldRecorder(Recorder):
    """One object for each attempt, as small as can be: it is made for every job."""

    def __init__(self, held: Held, phases: PhaseBook, boottime: Callable[[], float]) -> None:
        self._held, self._phases, self._boottime = held, phases, boottime

    def remaining_seconds(self) -> float:
        return self._held.trusted_until - self._boottime()

    def report(self, note: Note) -> None:
        self._phases.notes.note(self._held, note)

    def spend(self, spent: str) -> None:
        self._phases.notes.spend(self._held, spent)

    @property
    def log(self) -> JobLog:
        return self._held.log or self._phases.logs.begin(self._held)


async def _within_limits(
    held: Held, assignment: Assignment, box: Toolbox, phases: PhaseBook
) -> Outcome | None:
    kind, limit_seconds = assignment.kind, assignment.kind.time_limit_seconds
    bounds = box.bounds
    with bounds:
        if limit_seconds is not None:
            bounds.limit(limit_seconds)
        held.run_within(bounds.cancel, kind.grace_seconds, runs_in_thread(kind))
        try:
            if isinstance(kind.behaviour, Pipeline):
                outcome = await run_phases(held, assignment, box, phases)
            else:
                outcome = await box.runner(kind).run(assignment)
            if held.request is None:
                return outcome
            return held.end_after_request(outcome, trio.current_time())
        finally:
            held.has_run()
    if held.lost:
        return None
    if held.request is not None:
        return on_request(held.request)
    message = f"attempt {held.claim.attempt} took longer than its time limit of {limit_seconds:g} s"
    if held.phase is not None:
        message = f"phase {held.phase.name!r}: {message}"
    return Outcome("failure", None, "time_limit", message, kind.retryable)
