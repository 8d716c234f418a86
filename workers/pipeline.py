"""The phases of one attempt, one after the other, each by the runner of its own behaviour."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

import attrs
import trio

from musterd.catalog.kinds import Delay, Phase, Pipeline, Python, WorkKind
from musterd.catalog.tables import DELAY_SECONDS_MAX
from musterd.store.errors import InputRefused
from musterd.store.phases import ALL_PERCENT, PhaseEnd, PhaseState, PhaseStep, share_percent
from musterd.workers.claiming.held import Held
from musterd.workers.context import PhaseFacts
from musterd.workers.joblog import JobLog
from musterd.workers.outcome import Assignment, Note, Outcome, Recorder, on_request
from musterd.workers.progress import PhaseBook
from musterd.workers.toolbox import Toolbox


async def run_phases(held: Held, assignment: Assignment, box: Toolbox, book: PhaseBook) -> Outcome:
    """Runs the phases that no earlier attempt has finished. The outcome is that of the last one.

    The end of a phase is in the store before the next one begins. Where it is cancelled, a phase
    that had ended is settled as finished.
    """
    pipeline = assignment.kind.behaviour
    assert isinstance(pipeline, Pipeline)
    finished = dict(await book.begin(held, pipeline.names))
    return await _all(_Run(held, assignment, box, pipeline, finished), book)


async def _all(run: _Run, book: PhaseBook) -> Outcome:
    held, claim = run.held, run.assignment.claim
    rest = [phase for phase in run.pipeline.phases if phase.name not in run.finished]
    for place, phase in enumerate(rest, start=1):
        delay = phase.kind.behaviour
        outcome = run.wait(phase, delay) if isinstance(delay, Delay) else await run.phase(phase)
        if outcome.ended != "success":
            return outcome
        if place == len(rest):
            break
        if held.request is not None:  # asked for while it could not be stopped
            return on_request(held.request)
        next_, names = rest[place].name, run.pipeline.names
        step = PhaseStep(claim.id, claim.token, phase.name, outcome.result, next_, names, run.spent)
        await book.notes.last_word(held)
        try:
            await book.advance(held, step)
        except InputRefused as error:
            return run.failed(phase, Outcome("failure", None, "result_invalid", str(error)))
        held.advance()
    return Outcome("success", run.finished[run.pipeline.names[-1]])


@attrs.define(eq=False)
class _Run:
    """One attempt under way. `finished`: the results of what is, by name."""

    held: Held
    assignment: Assignment
    box: Toolbox
    pipeline: Pipeline
    finished: dict[str, str | None]
    spent: str | None = attrs.field(default=None, init=False)

    async def phase(self, phase: Phase) -> Outcome:
        """Runs one phase within its own limits; notes how it ended."""
        held, kind = self.held, phase.kind
        held.begin_phase(phase.name, kind.grace_seconds, runs_in_thread(kind))
        self.assignment.recorder.log.begin_phase(phase.name)
        recorder = _PhaseRecorder(self, phase)
        outcome: Outcome | None = None
        try:
            with trio.CancelScope() as scope:
                if kind.time_limit_seconds is not None:
                    scope.deadline = trio.current_time() + kind.time_limit_seconds
                outcome = await self.box.runner(kind).run(self._part(phase, recorder))
        except RecursionError:
            outcome = Outcome("failure", None, "payload_invalid", "payload: nested too deep")
        finally:
            held.leave_phase()
            self.spent = recorder.spent or self.spent
        if outcome is None:
            message = f"took longer than its time limit of {kind.time_limit_seconds:g} s"
            outcome = Outcome("failure", None, "time_limit", message, kind.retryable)
        if outcome.ended == "success":
            names = self.pipeline.names
            held.end_phase(PhaseEnd(phase.name, PhaseState.SUCCEEDED, outcome.result, names=names))
            self.finished[phase.name] = outcome.result
            return outcome
        return self.failed(phase, outcome)

    def wait(self, phase: Phase, delay: Delay) -> Outcome:
        """A delay is finished as soon as its time runs: the job waits in the queue until it is
        over, without a worker, and the next attempt begins with the phase behind it.
        """
        seconds = delay.seconds if delay.seconds is not None else self._seconds_from(delay)
        if isinstance(seconds, str):
            return self.failed(phase, Outcome("failure", None, "delay_invalid", seconds))
        result = json.dumps({"delay_seconds": seconds})
        end = PhaseEnd(phase.name, PhaseState.SUCCEEDED, result, names=self.pipeline.names)
        self.held.end_phase(end)
        self.finished[phase.name] = result
        if seconds == 0:
            return Outcome("success", result)
        return Outcome("snooze", message=f"phase {phase.name!r} waits", delay_seconds=seconds)

    def _seconds_from(self, delay: Delay) -> float | str:
        """What the field says, or what is wrong with it."""
        result = json.loads(self.finished[delay.phase] or "null")
        is_object = isinstance(result, dict)
        found = cast(Mapping[str, object], result).get(delay.field) if is_object else None
        seconds = found if type(found) is int or type(found) is float else -1
        if 0 <= seconds <= DELAY_SECONDS_MAX:
            return float(seconds)
        what = "no such field" if found is None else f"{json.dumps(found):.100}"
        return f"{delay.field!r} of phase {delay.phase!r}: found {what}, wanted seconds"

    def failed(self, phase: Phase, outcome: Outcome) -> Outcome:
        """A phase that ended otherwise than by success; a failure names it."""
        if outcome.ended not in ("failure", "retry"):
            return outcome
        self.held.end_phase(PhaseEnd(phase.name, PhaseState.FAILED), judged_by=phase.kind)
        return outcome._replace(message=f"phase {phase.name!r}: {outcome.message or ''}")

    def _part(self, phase: Phase, recorder: Recorder) -> Assignment:
        """The phase as its runner sees it: a job of its own."""
        claim, names = self.assignment.claim, self.pipeline.names
        if self.spent is not None:
            claim = claim._replace(spent=self.spent)
        if phase.input == "phases":
            claim = claim._replace(payload=self._input())
        facts = PhaseFacts(phase.name, names, self.finished, self.finished.__getitem__)
        payload = self.assignment.payload
        return Assignment(claim, phase.kind, payload, recorder, facts)

    def _input(self) -> str:
        """What a program or a server is given that wants the results of phases."""
        results = ", ".join(
            f"{json.dumps(name)}: {self.finished[name] or 'null'}"
            for name in self.pipeline.names
            if name in self.finished
        )
        return f'{{"payload": {self.assignment.claim.payload}, "phases": {{{results}}}}}'


class _PhaseRecorder(Recorder):
    """Of one phase. Neither its progress nor that of the whole ever goes back within an attempt."""

    def __init__(self, run: _Run, phase: Phase) -> None:
        self._whole, self._phase = run.assignment.recorder, phase.name
        self._finished, self._count = len(run.finished), len(run.pipeline.phases)
        self._furthest = 0.0

    def remaining_seconds(self) -> float:
        return self._whole.remaining_seconds()

    def report(self, note: Note) -> None:
        self._furthest = max(self._furthest, min(float(ALL_PERCENT), note.percent))
        overall = share_percent(self._finished, self._furthest, self._count)
        self._whole.report(Note(overall, note.note, self._phase, self._furthest))

    def spend(self, spent: str) -> None:
        super().spend(spent)
        self._whole.spend(spent)

    @property
    def log(self) -> JobLog:
        return self._whole.log


def runs_in_thread(kind: WorkKind) -> bool:
    return isinstance(kind.behaviour, Python) and kind.behaviour.isolation == "thread"
