"""A store in bad weather: a real engine whose calls are lost, whose replies are lost or late.

It keeps the history of what the store has truly done, for `tests.support.history` to judge.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeVar
from uuid import UUID

import attrs
import trio

from musterd.store.engine import ReapRequest, SchemaState
from musterd.store.errors import (
    InputRefused,
    OutcomeUnknown,
    StoreError,
    StoreMisconfigured,
    StoreUnavailable,
)
from musterd.store.facets import facet
from musterd.store.job import (
    Action,
    Claim,
    ClaimRequest,
    ControlResult,
    Counts,
    Enqueued,
    Exchange,
    Hint,
    Hold,
    JobFilter,
    JobRecord,
    NewJob,
    ProgressNote,
    Reaped,
    Renewal,
    Settlement,
)
from musterd.store.nodes import Beat, NodeRecord
from musterd.store.phases import KindRule
from musterd.store.queue_view import QueueView
from musterd.store.selection import Look, Selection, Step
from musterd.store.sqlite.engine import SqliteEngine
from musterd.store.standing import Standing
from musterd.store.target import TargetView
from tests.support.history import Event

T = TypeVar("T")
CALLS_AT_ONCE_MAX = 2_000
What = Literal["request_lost", "reply_lost", "late", "slow_request", "slow_reply", "misconfigured"]


@attrs.frozen
class Fault:
    """`late`: the caller hears nothing, and so many seconds later the call is carried out."""

    what: What
    seconds: float = 0.0


class FaultyEngine:
    """Calls are named `claim`, `settle` (an exchange that settles), `renew`, `reap`, `observe`, …

    `faults` befall the next calls of that name, one each. `broken` calls fail until they are
    taken out again. Nodes that share the store share this: it stays open when one of them closes.
    """

    name = "sqlite"
    where = "the store of a test"

    def __init__(self, engine: SqliteEngine, nursery: trio.Nursery) -> None:
        self.engine = engine
        self.faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.chance: Callable[[str], Fault | None] = lambda _: None
        self.away = False
        self.broken: set[str] = set()
        self.deaf = False  # no hint arrives
        self.refuses: Callable[[Settlement], bool] = lambda _: False
        self.calls: Counter[str] = Counter()
        self.history: list[Event] = []
        self._nursery = nursery
        self._moment, self._calls_at_moment = -1.0, 0
        self.audit = facet(engine.audit, "audit", self._through)
        self.board = facet(engine.board, "board", self._through)
        self.events = facet(engine.events, "events", self._through)
        self.phases = facet(engine.phases, "phases", self._through)
        self.outbox = facet(engine.outbox, "outbox", self._through)
        self.outlooks = facet(engine.outlooks, "outlook", self._through)
        self.retention = facet(engine.retention, "retention", self._through)
        self.duties = facet(engine.duties, "duties", self._through)
        self.schedules = facet(engine.schedules, "schedules", self._through)
        self.vitals = facet(engine.vitals, "vitals", self._through)

    async def open(self) -> None:
        await self._through("open", self.engine.open)

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()

    async def schema(self) -> SchemaState:
        return await self._through("schema", self.engine.schema)

    async def migrate(self) -> list[str]:
        return await self._through("migrate", self.engine.migrate)

    async def start_node(self, node: str) -> int:
        """As where several nodes share a store: a new one leaves the others' leases alone."""
        del node
        await trio.lowlevel.checkpoint()
        return 0

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[int]:
        return await self._through("enqueue", lambda: self.engine.enqueue(jobs))

    async def enqueue_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await self._through("enqueue", lambda: self.engine.enqueue_keyed(jobs))

    async def exchange(
        self, settlements: Sequence[Settlement], claim: ClaimRequest | None, now_local: float
    ) -> Exchange:
        async def commit() -> Exchange:
            if any(map(self.refuses, settlements)):
                raise InputRefused("the store cannot keep this result")
            done = await self.engine.exchange(settlements, claim, now_local)
            self._note_exchange(settlements, claim, done)
            return done

        return await self._through("settle" if settlements else "claim", commit)

    async def claims_under(self, token: UUID) -> list[Claim]:
        return await self._through("claims_under", lambda: self.engine.claims_under(token))

    async def settled_already(self, settlements: Sequence[Settlement]) -> frozenset[int]:
        return await self._through(
            "settled_already", lambda: self.engine.settled_already(settlements)
        )

    async def renew(self, holds: Sequence[Hold], lease_seconds: float, now_local: float) -> Renewal:
        async def commit() -> Renewal:
            renewal = await self.engine.renew(holds, lease_seconds, now_local)
            now = trio.current_time()
            self.history += [
                Event(now, "renew", hold.id, hold.token, lease_until=now + lease_seconds)
                for hold in holds
                if hold.id in renewal.kept
            ]
            return renewal

        return await self._through("renew", commit)

    async def note_progress(self, notes: Sequence[ProgressNote]) -> frozenset[int]:
        return await self._through("note_progress", lambda: self.engine.note_progress(notes))

    async def control(self, action: Action, job_id: int) -> ControlResult:
        return await self._through("control", lambda: self.engine.control(action, job_id))

    async def select_jobs(self, which: Selection, after_id: int, span: int) -> Look:
        return await self._through(
            "select_jobs", lambda: self.engine.select_jobs(which, after_id, span)
        )

    async def control_many(self, action: Action, ids: Sequence[int], which: Selection) -> Step:
        return await self._through(
            "control_many", lambda: self.engine.control_many(action, ids, which)
        )

    async def reap(self, request: ReapRequest) -> list[Reaped]:
        async def commit() -> list[Reaped]:
            reaped = await self.engine.reap(request)
            now = trio.current_time()
            self.history += [Event(now, "reap", one.id) for one in reaped]
            return reaped

        return await self._through("reap", commit)

    async def observe(
        self, limit: int, me: UUID | None = None, leased_max: int | None = None
    ) -> QueueView:
        return await self._through("observe", lambda: self.engine.observe(limit, me, leased_max))

    async def next_due_seconds(self) -> float | None:
        return await self._through("next_due", self.engine.next_due_seconds)

    async def counts(self) -> Counts:
        return await self._through("counts", self.engine.counts)

    async def job(self, job_id: int) -> JobRecord | None:
        return await self._through("job", lambda: self.engine.job(job_id))

    async def jobs(self, which: JobFilter) -> list[JobRecord]:
        return await self._through("jobs", lambda: self.engine.jobs(which))

    async def target(self, name: str) -> TargetView | None:
        return await self._through("target", lambda: self.engine.target(name))

    async def pause_queue(self, by: str) -> bool:
        return await self._through("pause_queue", lambda: self.engine.pause_queue(by))

    async def resume_queue(self) -> bool:
        return await self._through("resume_queue", self.engine.resume_queue)

    async def beat(self, beat: Beat) -> None:
        await self._through("beat", lambda: self.engine.beat(beat))

    async def leave(self, node_id: UUID) -> None:
        await self._through("leave", lambda: self.engine.leave(node_id))

    async def tell_kinds(self, rules: Mapping[str, KindRule]) -> None:
        await self._through("tell_kinds", lambda: self.engine.tell_kinds(rules))

    async def nodes(self) -> list[NodeRecord]:
        return await self._through("nodes", self.engine.nodes)

    async def standing(self, job_id: int) -> Standing | None:
        return await self._through("standing", lambda: self.engine.standing(job_id))

    async def wait_for_hint(self) -> Hint:
        if self.away:
            await trio.lowlevel.checkpoint()
            raise _away("hint")
        hint = await self.engine.wait_for_hint()
        if self.deaf:
            await trio.sleep_forever()
        return hint

    async def _through(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
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

    def _note_exchange(
        self, settlements: Sequence[Settlement], claim: ClaimRequest | None, done: Exchange
    ) -> None:
        now = trio.current_time()
        self.history += [
            Event(now, "settle", one.id, one.token, state=one.state)
            for one in settlements
            if one.id not in done.rejected
        ]
        if claim is not None:
            lease_until = now + claim.lease_seconds
            self.history += [
                Event(now, "claim", one.id, one.token, claim.node, lease_until=lease_until)
                for one in done.claims
            ]


def _away(operation: str) -> StoreUnavailable:
    return StoreUnavailable(f"{operation}: connection refused", "unreachable")
