"""What a node, or a client, reaches the store by: the product's Engine, at whose other end requests
travel, get lost, and are carried out by nobody's hand but the store's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, cast

import attrs
import trio

from musterd.store.errors import OutcomeUnknown, StoreError
from musterd.store.queue import Hint
from tests.simulation import operations
from tests.simulation.line_parts import DutiesLine, EventsLine, IdleLine, RetentionLine, lay
from tests.simulation.operations import Operations
from tests.simulation.plan import Scenario
from tests.simulation.recording import Recorder
from tests.simulation.scheduling import outside_of_all
from tests.simulation.store import Store
from tests.simulation.weather import CALM, Fate, Weather, refused, unknown
from tests.support.faulty_engine import FaultyEngine

T = TypeVar("T")
NOTHING = Operations((), operations.nothing)
# Their callers may hear that nobody knows, and their requests may come late.
CHANGES = frozenset(
    {
        *("enqueue", "settle", "claim", "renew", "note_progress", "control", "reap"),
        *("pause_queue", "resume_queue", "beat", "leave", "tell_kinds"),
        *("phases_begin", "phases_advance", "duties_take", "duties_renew", "duties_release"),
        *("events_tell", "outbox_take", "outbox_settle", "retention_mark", "retention_delete"),
        *("schedules_fire", "schedules_let_go", "schedules_know", "schedules_rewind"),
    }
)


class Ground(Protocol):
    """What a line runs over. `on_crash` is told of an error that nobody hears of."""

    nursery: trio.Nursery
    store: Store
    recorder: Recorder
    scenario: Scenario
    weather: Weather
    is_over: bool

    def crashed(self, who: str, error: BaseException) -> None: ...
    def duties_free(self, who: str) -> None: ...


@attrs.define(eq=False)
class Request:
    """On its way. `answered` when its sender has heard of it."""

    operation: str
    call: Callable[[], Awaitable[Any]]
    ids: list[int]
    told: Operations
    timeline: int
    fate: Fate
    done: bool = False
    result: Any = None
    error: BaseException | None = None
    answered: trio.Event = attrs.field(factory=trio.Event)

    def answer(self, result: Any) -> None:
        if not self.done:
            self.done, self.result = True, result
            self.answered.set()

    def fail(self, error: BaseException) -> None:
        if not self.done:
            self.done, self.error = True, error
            self.answered.set()


class Line(FaultyEngine):
    """`who` is `node:NAME` or `client:NAME`."""

    def __init__(self, ground: Ground, who: str) -> None:
        engine = ground.store.engine
        super().__init__(engine, ground.nursery)
        self.ground, self.who = ground, who
        node = who.removeprefix("node:")
        self._node = node if node != who else None
        self.under_way: dict[int, Request] = {}
        self._hint = Hint(False, frozenset())
        self._rung = trio.Event()
        self._numbers = 0
        self.watched_duties = DutiesLine(self)
        self.duties = cast(Any, self.watched_duties)
        lay(self)
        self.events = cast(Any, EventsLine(self, "events"))
        self.retention = cast(Any, RetentionLine(self, "retention"))
        self.idle = cast(Any, IdleLine(self))

    # -- requests

    async def _pass_on(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        return await self.pass_on(operation, call)

    async def pass_on(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        return await self.ask(operation, call, NOTHING)

    async def ask(self, operation: str, call: Callable[[], Awaitable[T]], told: Operations) -> T:
        """Sends it, and waits for what its sender hears of it."""
        ground, changes = self.ground, operation in CHANGES
        if ground.is_over:
            await trio.lowlevel.checkpoint()
            raise refused(operation, "unreachable")
        ids = [ground.recorder.call(op, self.who, **fields) for op, fields in told.asked]
        fate = ground.weather.fate(self._node, changes=changes)
        if fate is CALM and not changes:
            await trio.lowlevel.checkpoint()
            return await self._heard_at_once(call, ids, told)
        request = Request(operation, call, ids, told, ground.store.timeline, fate)
        self._numbers += 1
        number = self._numbers
        self.under_way[number] = request
        outside_of_all(ground.nursery.start_soon, self._carry, request, number)
        try:
            await request.answered.wait()
        except trio.Cancelled:
            self._unheard(ids)
            raise
        return cast(T, self._heard(request))

    async def _heard_at_once(
        self, call: Callable[[], Awaitable[T]], ids: list[int], told: Operations
    ) -> T:
        result = await call()
        for one, (status, fields) in zip(ids, told.told(result), strict=True):
            self.ground.recorder.reply(one, status, **fields)
        return result

    def _unheard(self, ids: list[int]) -> None:
        for one in ids:
            self.ground.recorder.reply(one, "unknown")

    def _heard(self, request: Request) -> Any:
        recorder, error = self.ground.recorder, request.error
        if error is not None:
            status = "unknown" if isinstance(error, OutcomeUnknown) else "refused"
            for one in request.ids:
                recorder.reply(one, status)
            raise error
        for one, told in zip(request.ids, request.told.told(request.result), strict=True):
            recorder.reply(one, told.status, **told.result)
        return request.result

    async def _carry(self, request: Request, number: int) -> None:
        """Nobody's task: it goes on whatever becomes of the sender."""
        fate = request.fate
        if fate.gives_up is not None:
            outside_of_all(self.ground.nursery.start_soon, self._give_up, request, fate.gives_up)
        if fate.there:
            await trio.sleep(fate.there)
        if fate.refusal is not None:
            request.fail(refused(request.operation, fate.refusal))
        elif not fate.lost and self._arrives(request):
            result = await self._carry_out(request)
            if fate.back and request.error is None:
                await trio.sleep(fate.back)
            if fate.gives_up is None and request.error is None:
                request.answer(result)
        self.under_way.pop(number, None)

    def _arrives(self, request: Request) -> bool:
        if self.ground.is_over or request.timeline != self.ground.store.timeline:
            request.fail(unknown(request.operation))
            return False
        return True

    async def _carry_out(self, request: Request) -> Any:
        store, steps = self.ground.store, request.fate.interrupted
        try:
            if steps is not None:
                store.interrupt_after(steps)
            result = await store.carry_out(request.call)
        except StoreError as error:
            request.fail(error)
            return None
        except Exception as error:  # noqa: BLE001 - a fault of the engine: its caller would meet it
            self.ground.crashed(self.who, error)
            request.fail(error)
            return None
        finally:
            if steps is not None:
                store.be_patient()
        for one, told in zip(request.ids, request.told.told(result), strict=True):
            if told.status == "ok" and request.operation != "claims_under":
                self.ground.recorder.commit(one, **told.result)
        if request.operation == "duties_release":
            self.ground.duties_free(self.who)
        return result

    async def _give_up(self, request: Request, seconds: float) -> None:
        await trio.sleep(seconds)
        request.fail(unknown(request.operation))

    def drop(self, may_arrive: Callable[[], bool]) -> int:
        """The connection breaks: whoever waits for an answer gets none. Gives how many did."""
        waiting = [one for one in self.under_way.values() if not one.done]
        for request in waiting:
            if not may_arrive():
                request.fate = attrs.evolve(request.fate, lost=True)
            request.fail(unknown(request.operation))
        return len(waiting)

    # -- wake-ups

    def hint(self, hint: Hint) -> None:
        new_work, requests, duties = self._hint
        self._hint = Hint(
            new_work or hint.new_work, requests | hint.requests, duties or hint.duties
        )
        self._rung.set()

    async def wait_for_hint(self) -> Hint:
        if self.ground.is_over:
            await trio.sleep_forever()
        if self.ground.weather.is_deaf("hints_broken", self._node):
            await trio.lowlevel.checkpoint()
            raise refused("hint", "unreachable")
        await self._rung.wait()
        hint, self._hint = self._hint, Hint(False, frozenset())
        self._rung = trio.Event()
        return hint
