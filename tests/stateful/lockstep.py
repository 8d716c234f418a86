"""Two engines that are asked the same things, and what they have in common to say.

Jobs are numbered as the model numbers them. Where the engines differ, that is the failure.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeGuard
from uuid import UUID, uuid4

import attrs

from musterd.store.control import Selection
from musterd.store.engine import Engine
from musterd.store.events import Event
from musterd.store.jobs import JobFilter, JobRecord, NewJob
from musterd.store.leases import (
    Claim,
    ClaimRequest,
    Ends,
    Exchange,
    Hold,
    ProgressNote,
    ReapRequest,
    ReapRule,
    Settlement,
)
from musterd.store.lifecycle import Action, AttemptOutcome, JobState
from musterd.store.phases import PhaseEnd, PhaseStart, PhaseState, PhaseStep
from musterd.store.retention import RetentionTask
from tests.contract.event_tools import everything
from tests.contract.retention_tools import all_after, walk
from tests.contract.rigs import LEASE_SECONDS, START
from tests.stateful.model import Done
from tests.stateful.model_job import Held, Verdict
from tests.stateful.model_line import Taken, Wanted
from tests.stateful.stores import Store

NODE = "north"
BATCH = 1000
ERROR = '{"type": "E", "message": "m"}'
RESULT = '{"a": 1}'


class Visited(NamedTuple):
    """What visits to a store came to."""

    rejected: frozenset[int]
    turned: dict[int, JobState]
    taken: list[Taken]


@attrs.define
class Asked:
    """One store, asked in the model's numbers."""

    store: Store
    place: int  # among the stores
    ids: list[int] = attrs.field(factory=list[int])  # by the model's number, less one

    @property
    def engine(self) -> Engine:
        return self.store.engine

    def id_of(self, number: int) -> int:
        return self.ids[number - 1] if number <= len(self.ids) else 10**9

    def number(self, job_id: int | None) -> int:
        assert job_id is not None
        return self.ids.index(job_id) + 1

    def numbers(self, ids: Sequence[int] | frozenset[int]) -> frozenset[int]:
        return frozenset(map(self.number, ids))

    def token(self, held: Held) -> UUID:
        return uuid4() if held.forged else held.tokens[self.place]

    async def enqueue(self, wanted: Sequence[Wanted]) -> list[tuple[int, bool]]:
        made = await self.engine.jobs.enqueue_keyed([_new(one) for one in wanted])
        self.ids += [one.id for one in made if one.is_new]
        return [(self.number(one.id), one.is_new) for one in made]

    def settlement(self, held: Held, verdict: Verdict, now: float) -> Settlement:
        failed = verdict.outcome in ("failed", "retrying")
        phase = verdict.finishes
        return Settlement(
            self.id_of(held.id), self.token(held), held.attempt, held.worker,
            START if verdict.has_started else None, now,
            verdict.state, AttemptOutcome(verdict.outcome),
            delay_seconds=verdict.delay_seconds,
            result=RESULT if verdict.state is JobState.SUCCEEDED else None,
            error=ERROR if failed else None,
            reason="so" if verdict.state in (JobState.PAUSED, JobState.CANCELED) else None,
            forgive=verdict.forgive,
            log="log" if failed else None,
            target=held.target,
            percent=verdict.percent,
            note=None if verdict.percent is None else "far",
            phase=PhaseEnd(phase, PhaseState.SUCCEEDED, RESULT, names=verdict.names)
            if phase
            else None,
        )  # fmt: skip

    async def visit(
        self, settlements: Sequence[Settlement], request: ClaimRequest | None
    ) -> tuple[Visited, list[Claim]]:
        """Looks again for as long as jobs are taken out of the way."""
        exchange = first = await self.engine.leases.exchange(Ends(settlements), request)
        claims = list(exchange.claims)
        while request is not None and exchange.parked and len(claims) < request.batch:
            exchange = await self.engine.leases.exchange(Ends(), _rest(request, claims))
            claims += exchange.claims
        return self._visited(first, claims), claims

    def _visited(self, first: Exchange, claims: Sequence[Claim]) -> Visited:
        turned = {self.number(job_id): state for job_id, state in first.turned.items()}
        taken = [
            Taken(
                self.number(one.id), one.attempt, one.max_attempts, one.forgiven,
                one.waited_seconds, one.worker,
            )
            for one in claims
        ]  # fmt: skip
        return Visited(self.numbers(first.rejected), turned, taken)

    async def claims_under(self, token: UUID) -> list[tuple[int, int]]:
        found = await self.engine.leases.claims_under(token)
        return sorted((self.number(one.id), one.attempt) for one in found)

    async def settled_already(self, settlements: Sequence[Settlement]) -> frozenset[int]:
        return self.numbers(await self.engine.leases.settled_already(settlements))

    async def renew(self, held: Held, *, has_started: bool) -> tuple[bool, str | None]:
        started = START if has_started else None
        hold = Hold(self.id_of(held.id), self.token(held), held.worker, started)
        renewal = await self.engine.leases.renew([hold], LEASE_SECONDS)
        assert renewal.kept <= {hold.id}
        return hold.id in renewal.kept, renewal.requests.get(hold.id)

    async def note_progress(self, held: Held, percent: float | None) -> bool:
        note = ProgressNote(self.id_of(held.id), self.token(held), percent, "note", None)
        return note.id in await self.engine.leases.note_progress([note])

    async def begin_phases(self, held: Held, names: tuple[str, ...]) -> list[str] | None:
        start = PhaseStart(self.id_of(held.id), self.token(held), held.worker, START, names)
        begun = await self.engine.phases.begin([start])
        return [name for name in names if name in begun[start.id]] if begun else None

    async def advance(self, held: Held, finished: str, next_: str, names: tuple[str, ...]) -> bool:
        step = PhaseStep(self.id_of(held.id), self.token(held), finished, RESULT, next_, names)
        return step.id in await self.engine.phases.advance([step])

    async def reap(
        self, rule: str, max_attempts: int, capped: frozenset[str], kinds: Sequence[str]
    ) -> list[tuple[int, int, JobState]]:
        rules = {kind: ReapRule(rule, max_attempts, kind in capped) for kind in kinds}
        request = ReapRequest(rules, ReapRule(rule, max_attempts), BATCH)
        found = await self.engine.leases.reap(request)
        assert all(one.node == NODE for one in found)
        return sorted((self.number(one.id), one.attempt, one.state) for one in found)

    async def control(self, action: Action, number: int) -> Done:
        done = await self.engine.control.apply(action, self.id_of(number))
        assert done.found is (done.state_before is not None)
        return Done(done.state_before, done.state_after, done.requested, done.allowed)

    async def control_many(
        self, action: Action, numbers: Sequence[int], which: Selection
    ) -> tuple[frozenset[int], ...]:
        ids = [self.id_of(one) for one in numbers]
        return tuple(map(self.numbers, await self.engine.control.apply_many(action, ids, which)))

    async def retain(self, what: str, age_seconds: float, batch: int) -> int:
        return await walk(self.engine, what, RetentionTask(all_after(age_seconds), batch))

    async def records(self) -> list[JobRecord]:
        """All jobs as readers see them."""
        found = await self.engine.jobs.find(JobFilter(limit=BATCH))
        return [  # nothing reached, or nothing said of it, is the same to readers
            attrs.evolve(one, id=self.number(one.id), progress=one.progress or None)
            for one in reversed(found)
        ]

    async def told(self) -> list[Event]:
        """What was told of each job, in order, with the model's numbers for positions."""
        found = [
            one._replace(id=0, job_id=self.number(one.job_id))
            for one in await everything(self.engine)
        ]
        return sorted(found, key=lambda one: one.job_id or 0)


@attrs.define
class Lockstep:
    """What both say, or a failure."""

    both: tuple[Asked, Asked]

    async def ask(self, what: str, call: Callable[[Asked], Awaitable[Any]]) -> Any:
        one, other = [await call(each) for each in self.both]
        told = [
            f"  {self._name(0)} {mine}\n  {self._name(1)} {others}"
            for mine, others in _differing(one, other)
        ]
        assert one == other, "\n".join([f"{what}:", *told])
        return one

    def _name(self, place: int) -> str:
        return self.both[place].engine.name


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _differing(one: Any, other: Any) -> list[tuple[Any, Any]]:
    """Of two lists those parts of which they are made up otherwise."""
    if not _is_list(one):
        return [(one, other)]
    both = itertools.zip_longest(one, other)
    return [(mine, others) for mine, others in both if mine != others]


def _new(wanted: Wanted) -> NewJob:
    scope: Any = wanted.scope
    return NewJob(
        wanted.kind, priority=wanted.priority, delay_seconds=wanted.delay_seconds,
        max_attempts=wanted.max_attempts, hold=wanted.hold, dedup_key=wanted.key,
        dedup_scope=scope, target=wanted.target,
    )  # fmt: skip


def _rest(request: ClaimRequest, claims: Sequence[Claim]) -> ClaimRequest:
    given = len(request.workers)
    workers = request.workers[len(claims) :]
    ahead = request.ahead - max(0, len(claims) - given)
    return attrs.evolve(request, token=uuid4(), workers=workers, ahead=ahead)
