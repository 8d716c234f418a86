"""One claim, run under its time limit and its lease. What its kind does wrong becomes an Outcome;
only a cancel gets out.
"""

from __future__ import annotations

from typing import cast

import trio

from musterd.catalog.behaviour import JSON
from musterd.catalog.kinds import Deterministic, Pipeline, WorkKind
from musterd.store.payload import PayloadInvalid, decode_payload
from musterd.workers.claiming.held import Held
from musterd.workers.outcome import Outcome, on_request
from musterd.workers.phase_book import PhaseBook
from musterd.workers.pipeline import run_phases, runs_in_thread
from musterd.workers.runners import deterministic
from musterd.workers.running import Assignment, Traces
from musterd.workers.toolbox import Box


async def attempt(held: Held, kind: WorkKind, box: Box, phases: PhaseBook) -> Outcome | None:
    """Runs the claim. None = its lease was lost on the way: nothing may be written for it."""
    claim = held.claim
    try:
        payload = cast(JSON, decode_payload(claim.payload))
        outcome = None
        if isinstance(kind.behaviour, Deterministic):
            outcome = deterministic.at_once(kind, payload, claim)
    except PayloadInvalid as error:
        return Outcome("failure", None, "payload_invalid", str(error))
    except RecursionError:  # it could be parsed, but not be walked through
        return Outcome("failure", None, "payload_invalid", "payload: found nesting too deep")
    if outcome is not None:
        return outcome
    boottime = box.tools.boottime
    assignment = Assignment(
        claim, kind, payload, lambda: held.trusted_until - boottime(), held.note, Traces()
    )
    return await _within_limits(held, assignment, box, phases)


async def _within_limits(
    held: Held, assignment: Assignment, box: Box, phases: PhaseBook
) -> Outcome | None:
    kind, limit_seconds = assignment.kind, assignment.kind.time_limit_seconds
    with box.bounds as scope:
        if limit_seconds is not None:
            scope.deadline = trio.current_time() + limit_seconds
        held.run_within(scope, kind.grace_seconds, runs_in_thread(kind))
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
    number, traces = held.claim.attempt, assignment.traces
    if held.request is not None:
        return on_request(held.request)._replace(log=traces.log, spent=traces.spent)
    message = f"attempt {number} took longer than its time limit of {limit_seconds:g} s"
    if held.phase is not None:
        message = f"phase {held.phase.name!r}: {message}"
    outcome = Outcome("failure", None, "time_limit", message, kind.retryable)
    return outcome._replace(log=traces.log, spent=traces.spent)
