"""The parts of a store as a line reaches them: duties, phases, schedules, retention, events; with
what is written down of requests to them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar
from uuid import UUID

import trio

from musterd.store.duties import DutyReport, Holder
from musterd.store.events import NewEvent
from musterd.store.facets import facet
from musterd.store.outlook import Outlook
from musterd.store.phases import PhaseStart, PhaseStep, Results
from musterd.store.retention import Errand, Place, Strides
from musterd.store.schedules import Fired, Firing
from tests.simulation import operations
from tests.simulation.operations import Operations
from tests.simulation.plan import Scenario
from tests.simulation.recording import Recorder
from tests.simulation.store import Store
from tests.support.outlooks import outlook_of

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


class DutiesLine:
    """The duties over a line. `act`: work of one has its effect now."""

    def __init__(self, line: Line) -> None:
        self._line, self._engine = line, line.engine.duties
        self._rest = facet(self._engine, "duties", line.pass_on)
        self._terms: dict[str, UUID] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rest, name)

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


class OutlookLine:
    """As on PostgreSQL, but that hints may be lost although the line lives."""

    def __init__(self, line: Line) -> None:
        self._line, self._engine = line, line.engine

    async def look(self, me: UUID) -> Outlook | None:
        if self._line.ground.scenario.hintless:
            await trio.lowlevel.checkpoint()
            return None
        with trio.move_on_after(ANSWER_SECONDS):
            return await self._line.pass_on("outlook_look", lambda: outlook_of(self._engine, me))
        return None


class PhasesLine:
    def __init__(self, line: Line) -> None:
        self._line, self._engine = line, line.engine.phases

    async def begin(self, starts: Sequence[PhaseStart], now_local: float) -> Mapping[int, Results]:
        return await self._line.pass_on(
            "phases_begin", lambda: self._engine.begin(starts, now_local)
        )

    async def advance(self, steps: Sequence[PhaseStep]) -> frozenset[int]:
        told = operations.phases(steps)
        return await self._line.ask("phases_advance", lambda: self._engine.advance(steps), told)


class SchedulesLine:
    def __init__(self, line: Line) -> None:
        self._line, self._engine = line, line.engine.schedules
        self._rest = facet(self._engine, "schedules", line.pass_on)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rest, name)

    async def fire(self, firing: Firing) -> Fired:
        self._line.watched_duties.act("schedules")
        told = operations.fire(firing)
        return await self._line.ask("schedules_fire", lambda: self._engine.fire(firing), told)


class RetentionLine:
    def __init__(self, line: Line) -> None:
        self._line, self._engine = line, line.engine.retention
        self._rest = facet(self._engine, "retention", line.pass_on)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rest, name)

    async def delete(self, errand: Errand, after: Place | None) -> Strides:
        line, deleted = self._line, list[int]()
        line.watched_duties.act("retention")

        async def call() -> Strides:
            done: Strides = await self._engine.delete(errand, after)
            deleted.extend(line.ground.store.take_deleted())
            return done

        return await line.ask("retention_delete", call, operations.delete(deleted))


class EventsLine:
    """A node that says that it drains claims nothing from then on."""

    def __init__(self, line: Line) -> None:
        self._line, self._engine = line, line.engine.events
        self._rest = facet(self._engine, "events", line.pass_on)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rest, name)

    async def tell(self, events: Sequence[NewEvent]) -> None:
        line = self._line
        if any(one.type == "node.draining" for one in events):
            node = line.who.removeprefix("node:")
            line.ground.recorder.note("process", what="draining", node=node)
        await line.pass_on("events_tell", lambda: self._engine.tell(events))
