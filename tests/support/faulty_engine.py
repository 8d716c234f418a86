"""A store in bad weather: a real engine whose calls are lost, whose replies are lost or late.

It keeps the history of what the store has truly done, for `tests.support.history` to judge.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeVar, cast

import attrs
import trio

from musterd.store.errors import (
    InputRefused,
    OutcomeUnknown,
    StoreError,
    StoreMisconfigured,
    StoreUnavailable,
)
from musterd.store.leases import (
    ClaimRequest,
    Ends,
    Exchange,
    Hold,
    Leases,
    Reaped,
    ReapRequest,
    Renewal,
    Settlement,
)
from musterd.store.queue import Hint
from musterd.store.sqlite.engine import SqliteEngine
from musterd.store.wrapped import WrappedEngine, wrapped
from tests.support.history import Event

T = TypeVar("T")
CALLS_AT_ONCE_MAX = 2_000
What = Literal["request_lost", "reply_lost", "late", "slow_request", "slow_reply", "misconfigured"]


@attrs.frozen
class Fault:
    """`late`: the caller hears nothing, and so many seconds later the call is carried out."""

    what: What
    seconds: float = 0.0


class PartOverlay:
    """The part of an engine, of which a subclass answers some calls in its own way."""

    def __init__(self, part: object) -> None:
        self.part: Any = part

    def __getattr__(self, name: str) -> Any:
        return getattr(self.part, name)


class FaultyEngine(WrappedEngine):
    """Calls are named as in the metrics: `claim`, `settle`, `renew`, `reap`, `observe`, …

    `faults` befall the next calls of that name, one each. `broken` calls fail until they are
    taken out again. Nodes that share the store share this: it stays open when one of them closes.
    """

    def __init__(self, engine: SqliteEngine, nursery: trio.Nursery) -> None:
        super().__init__(engine, self._pass_on)
        self.where = "the store of a test"
        self.engine = engine
        self.leases = wrapped(cast(Leases, _RecordedLeases(self)), "leases", self._pass_on)
        self.faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.chance: Callable[[str], Fault | None] = lambda _: None
        self.away = False
        self.broken: set[str] = set()
        self.deaf = False  # no hint arrives
        self.refuses: Callable[[Settlement], bool] = lambda _: False
        self.calls: Counter[str] = Counter()
        self.deeds: list[Event] = []
        self._nursery = nursery
        self._moment, self._calls_at_moment = -1.0, 0

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()

    async def start_node(self, node: str) -> int:
        """As where several nodes share a store: a new one leaves the others' leases alone."""
        del node
        await trio.lowlevel.checkpoint()
        return 0

    async def _pass_on(self, operation: str, call: Callable[[], Awaitable[Any]]) -> Any:
        if operation == "wait_for_hint":
            return await self._wait_for_hint()
        return await self._meet_faults(operation, call)

    async def _wait_for_hint(self) -> Hint:
        if self.away:
            await trio.lowlevel.checkpoint()
            raise _away("hint")
        hint = await self.engine.queue.wait_for_hint()
        if self.deaf:
            await trio.sleep_forever()
        return hint

    async def _meet_faults(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        self._count(operation)
        if self.away or operation in self.broken:
            await trio.lowlevel.checkpoint()
            raise _away(operation)
        waiting = self.faults[operation]
        fault = waiting.popleft() if waiting else self.chance(operation)
        if fault is None:
            return await call()
        return await self._befall(fault, operation, call)

    def _count(self, operation: str) -> None:
        """On a clock that jumps, a loop without a pause would never end."""
        self.calls[operation] += 1
        if trio.current_time() != self._moment:
            self._moment, self._calls_at_moment = trio.current_time(), 0
        self._calls_at_moment += 1
        assert self._calls_at_moment <= CALLS_AT_ONCE_MAX, f"{operation}: asked without a pause"

    async def _befall(self, fault: Fault, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        match fault.what:
            case "request_lost":
                await trio.sleep(fault.seconds)
                raise _away(operation)
            case "misconfigured":
                await trio.lowlevel.checkpoint()
                raise StoreMisconfigured(f"{operation}: the role lacks a right")
            case "reply_lost":
                await call()
            case "late":
                self._nursery.start_soon(self._carry_out_late, fault.seconds, call)
                await trio.lowlevel.checkpoint()
            case "slow_request":
                await trio.sleep(fault.seconds)
                return await call()
            case "slow_reply":
                done = await call()
                await trio.sleep(fault.seconds)
                return done
        raise OutcomeUnknown(f"{operation}: no reply came", "unreachable")

    async def _carry_out_late(self, seconds: float, call: Callable[[], Awaitable[object]]) -> None:
        await trio.sleep(seconds)
        try:
            await call()
        except StoreError:
            return  # nobody hears of it


class _RecordedLeases(PartOverlay):
    """What the store has truly done goes into the history."""

    def __init__(self, engine: FaultyEngine) -> None:
        super().__init__(engine.engine.leases)
        self._engine = engine

    async def exchange(self, ends: Ends, claim: ClaimRequest | None) -> Exchange:
        if any(map(self._engine.refuses, ends.all())):
            raise InputRefused("the store cannot keep this result")
        done: Exchange = await self.part.exchange(ends, claim)
        now = trio.current_time()
        self._engine.deeds += [
            Event(now, "settle", one.id, one.token, state=one.state)
            for one in ends.all()
            if one.id not in done.rejected | done.held_up
        ]
        if claim is not None:
            lease_until = now + claim.lease_seconds
            self._engine.deeds += [
                Event(now, "claim", one.id, one.token, claim.node, lease_until=lease_until)
                for one in done.claims
            ]
        return done

    async def renew(self, holds: Sequence[Hold], lease_seconds: float | None) -> Renewal:
        renewal: Renewal = await self.part.renew(holds, lease_seconds)
        if lease_seconds is None:
            return renewal
        now = trio.current_time()
        self._engine.deeds += [
            Event(now, "renew", hold.id, hold.token, lease_until=now + lease_seconds)
            for hold in holds
            if hold.id in renewal.kept
        ]
        return renewal

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        reaped: list[Reaped] = await self.part.reap(request)
        now = trio.current_time()
        self._engine.deeds += [Event(now, "reap", one.id) for one in reaped]
        return reaped


def _away(operation: str) -> StoreUnavailable:
    return StoreUnavailable(f"{operation}: connection refused", "unreachable")
