"""The parts of a store as a line reaches them, with what is written down of requests to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar
from uuid import UUID

import trio

from musterd.store.duties import DutyReport, Holder
from musterd.store.events import NewEvent
from musterd.store.leases import Ends
from musterd.store.queue import Hint, IdleCheck
from musterd.store.retention import BatchResult, JobPosition, RetentionTask
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

    async def ask(self, method: str, operation: str, told: Operations, *values: Any) -> Any:
        call = getattr(self._engine, method)
        return await self._line.ask(operation, lambda: call(*values), told)

    def act(self, duty: str) -> None:
        """Work of this duty has its effect now."""
        self._line.watched_duties.act(duty)


def asked(method: str, operation: str, told: Callable[..., Operations], duty: str = "") -> Any:
    """The engine's method. Written down is what `told` makes of its arguments; `duty`: whose work
    it is.
    """

    async def ask(part: PartLine, *values: Any) -> Any:
        if duty:
            part.act(duty)
        return await part.ask(method, operation, told(*values), *values)

    return ask


class DutiesLine(PartLine):
    """The duties over a line. `act`: work of one has its effect now."""

    renew = asked("renew", "duties_renew", operations.renew_duties)

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

    async def release(self, reports: Sequence[DutyReport]) -> None:
        terms: dict[str, bytes] = {}

        async def call() -> None:
            self._line.ground.store.be_patient()
            terms.update(self._line.ground.store.terms())
            await self._engine.release(reports)

        await self._line.ask("duties_release", call, operations.release_duties(reports, terms))


class JobsLine(PartLine):
    enqueue_keyed = asked("enqueue_keyed", "enqueue", operations.enqueue)


class LeasesLine(PartLine):
    claims_under = asked("claims_under", "claims_under", operations.read_back)
    renew = asked("renew", "renew", operations.renew)
    note_progress = asked("note_progress", "note_progress", operations.progress)
    reap = asked("reap", "reap", operations.reap, duty="reaping")

    async def exchange(self, ends: Ends, claim: Any) -> Any:
        name = "settle" if ends.are_any else "claim"
        told = operations.exchange(ends.all(), claim)
        return await self.ask("exchange", name, told, ends, claim)


class ControlLine(PartLine):
    apply = asked("apply", "control", operations.control)
    apply_many = asked("apply_many", "control_many", operations.control_many)


class QueueLine(PartLine):
    pause = asked("pause", "pause_queue", operations.pause)
    resume = asked("resume", "resume_queue", operations.resume)

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
    advance = asked("advance", "phases_advance", operations.phases)


class SchedulesLine(PartLine):
    fire = asked("fire", "schedules_fire", operations.fire, duty="schedules")


class OutboxLine(PartLine):
    take = asked("take", "outbox_take", operations.take_messages)
    settle = asked("settle", "outbox_settle", operations.settle_messages)


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


# Parts of which the requests are written down alike, on whatever engine.
RECORDED: dict[str, type[PartLine]] = {
    "jobs": JobsLine,
    "leases": LeasesLine,
    "control": ControlLine,
    "queue": QueueLine,
    "phases": PhasesLine,
    "schedules": SchedulesLine,
    "outbox": OutboxLine,
}


def lay(line: Any) -> None:
    """Makes these the parts of the engine that this line is."""
    for name, part in RECORDED.items():
        setattr(line, name, part(line, name))
