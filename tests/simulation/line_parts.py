"""The parts of a store as a line reaches them, with what is written down of requests to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar
from uuid import UUID

import trio

from musterd.store.control import ControlResult
from musterd.store.duties import DutyReport, Holder
from musterd.store.events import NewEvent
from musterd.store.jobs import Enqueued, NewJob
from musterd.store.leases import (
    Claim,
    ClaimRequest,
    Ends,
    Exchange,
    Hold,
    ProgressNote,
    Reaped,
    ReapRequest,
    Renewal,
)
from musterd.store.lifecycle import Action
from musterd.store.phases import PhaseStep
from musterd.store.queue import Hint, IdleCheck
from musterd.store.retention import BatchResult, JobPosition, RetentionTask
from musterd.store.schedules import Fired, Firing
from musterd.store.wrapped import wrapped
from tests.simulation import operations
from tests.simulation.operations import Operations
from tests.simulation.plan import Scenario
from tests.simulation.recording import Recorder
from tests.simulation.store import Store
from tests.support.faulty_engine import PartOverlay
from tests.support.idle_checks import idle_check_of

T = TypeVar("T")
ANSWER_SECONDS = 1.0  # as on PostgreSQL


class Ground(Protocol):
    store: Store
    recorder: Recorder
    scenario: Scenario


class Line(Protocol):
    who: str
    engine: Any

    @property
    def ground(self) -> Ground: ...

    @property
    def watched_duties(self) -> DutiesLine: ...

    async def ask(
        self, operation: str, call: Callable[[], Awaitable[T]], told: Operations
    ) -> T: ...

    async def pass_on(self, operation: str, call: Callable[[], Awaitable[T]]) -> T: ...

    async def wait_for_hint(self) -> Hint: ...


class PartLine(PartOverlay):
    """Requests of which nothing is written down pass on as they are."""

    def __init__(self, line: Line, name: str) -> None:
        self._line, self._engine = line, getattr(line.engine, name)
        super().__init__(wrapped(self._engine, name, line.pass_on))


class DutiesLine(PartLine):
    """The duties over a line. `act`: work of one has its effect now."""

    def __init__(self, line: Line) -> None:
        super().__init__(line, "duties")
        self._terms: dict[str, UUID] = {}

    def act(self, duty: str) -> None:
        term = self._terms.get(duty)
        if term is not None:
            self._line.ground.recorder.note("act", duty=duty, term=str(term))

    async def take(self, duties: Sequence[str], holder: Holder) -> frozenset[str]:
        told = operations.take_duties(duties, holder)
        taken: frozenset[str] = await self._line.ask(
            "duties_take", lambda: self._engine.take(duties, holder), told
        )
        self._terms |= dict.fromkeys(sorted(taken), holder.term)
        return taken

    async def renew(self, reports: Sequence[DutyReport], lease_seconds: float) -> frozenset[str]:
        told = operations.renew_duties(reports, lease_seconds)
        kept: frozenset[str] = await self._line.ask(
            "duties_renew", lambda: self._engine.renew(reports, lease_seconds), told
        )
        return kept

    async def release(self, reports: Sequence[DutyReport]) -> None:
        terms: dict[str, bytes] = {}

        async def call() -> None:
            self._line.ground.store.be_patient()
            terms.update(self._line.ground.store.terms())
            await self._engine.release(reports)

        await self._line.ask("duties_release", call, operations.release_duties(reports, terms))


class JobsLine(PartLine):
    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        made: list[Enqueued] = await self._line.ask(
            "enqueue", lambda: self._engine.enqueue_keyed(jobs), operations.enqueue(jobs)
        )
        return made


class LeasesLine(PartLine):
    async def exchange(self, ends: Ends, claim: ClaimRequest | None, now_local: float) -> Exchange:
        told = operations.exchange(ends.all(), claim)
        name = "settle" if ends.are_any else "claim"
        done: Exchange = await self._line.ask(
            name, lambda: self._engine.exchange(ends, claim, now_local), told
        )
        return done

    async def claims_under(self, token: UUID) -> list[Claim]:
        told = operations.read_back(token)
        found: list[Claim] = await self._line.ask(
            "claims_under", lambda: self._engine.claims_under(token), told
        )
        return found

    async def renew(
        self, holds: Sequence[Hold], lease_seconds: float | None, now_local: float
    ) -> Renewal:
        told = operations.renew(holds, lease_seconds)
        renewal: Renewal = await self._line.ask(
            "renew", lambda: self._engine.renew(holds, lease_seconds, now_local), told
        )
        return renewal

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        told = operations.progress(notes)
        taken: frozenset[int] = await self._line.ask(
            "note_progress", lambda: self._engine.note_progress(notes), told
        )
        return taken

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        self._line.watched_duties.act("reaping")
        reaped: list[Reaped] = await self._line.ask(
            "reap", lambda: self._engine.reap(request), operations.reap()
        )
        return reaped


class ControlLine(PartLine):
    async def apply(self, action: Action, job_id: int) -> ControlResult:
        told = operations.control(action, job_id)
        done: ControlResult = await self._line.ask(
            "control", lambda: self._engine.apply(action, job_id), told
        )
        return done


class QueueLine(PartLine):
    async def pause(self, by: str) -> bool:
        told = operations.queue("pause_queue")
        paused: bool = await self._line.ask("pause_queue", lambda: self._engine.pause(by), told)
        return paused

    async def resume(self) -> bool:
        told = operations.queue("resume_queue")
        resumed: bool = await self._line.ask("resume_queue", self._engine.resume, told)
        return resumed

    async def wait_for_hint(self) -> Hint:
        return await self._line.wait_for_hint()


class IdleLine:
    """As on PostgreSQL, but that hints may be lost although the line lives."""

    def __init__(self, line: Line) -> None:
        self._line, self._engine = line, line.engine

    async def check(self, me: UUID) -> IdleCheck | None:
        if self._line.ground.scenario.hintless:
            await trio.lowlevel.checkpoint()
            return None
        with trio.move_on_after(ANSWER_SECONDS):
            return await self._line.pass_on("outlook_look", lambda: idle_check_of(self._engine, me))
        return None


class PhasesLine(PartLine):
    async def advance(self, steps: Sequence[PhaseStep]) -> frozenset[int]:
        told = operations.phases(steps)
        taken: frozenset[int] = await self._line.ask(
            "phases_advance", lambda: self._engine.advance(steps), told
        )
        return taken


class SchedulesLine(PartLine):
    async def fire(self, firing: Firing) -> Fired:
        self._line.watched_duties.act("schedules")
        told = operations.fire(firing)
        fired: Fired = await self._line.ask(
            "schedules_fire", lambda: self._engine.fire(firing), told
        )
        return fired


class RetentionLine(PartLine):
    async def delete(self, task: RetentionTask, after: JobPosition | None) -> BatchResult:
        line, deleted = self._line, list[int]()
        line.watched_duties.act("retention")

        async def call() -> BatchResult:
            done: BatchResult = await self._engine.delete(task, after)
            deleted.extend(line.ground.store.take_deleted())
            return done

        return await line.ask("retention_delete", call, operations.delete(deleted))


class EventsLine(PartLine):
    """A node that says that it drains claims nothing from then on."""

    async def record(self, events: Sequence[NewEvent]) -> None:
        line = self._line
        if any(one.type == "node.draining" for one in events):
            node = line.who.removeprefix("node:")
            line.ground.recorder.note("process", what="draining", node=node)
        await line.pass_on("events_tell", lambda: self._engine.record(events))
