"""Carries settlements and claims between the desk and the store, one visit after another.

What gathers during one visit goes with the next, so batches grow with the load and a single job
waits for nobody. A failed visit loses nothing: settlements stay at the desk, and a visit whose
reply was lost is read back by token.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import attrs
import trio

from musterd.store.engine import Engine
from musterd.store.errors import InputRefused, OutcomeUnknown, StoreError
from musterd.store.job import AttemptOutcome, ClaimRequest, Exchange, JobState
from musterd.store.phases import PhaseEnd, PhaseState
from musterd.workers.desk import Desk
from musterd.workers.held import Ended
from musterd.workers.listener import turned_report
from musterd.workers.outcome import error_json

T = TypeVar("T")

PAUSE_SECONDS = 0.1  # after a failed visit, doubled with each further one
PAUSE_SECONDS_MAX = 2.0
REFUSED_BYTES_MAX = 2000


@attrs.define(eq=False)
class Carrier:
    """Owned by the daemon. `on_delay` is called when the next due time may have changed: the queue
    has run dry after work or a hint, or a job was put off.
    """

    desk: Desk
    engine: Engine
    boottime: Callable[[], float]
    dice: random.Random
    on_delay: Callable[[], None]
    finished: trio.Event = attrs.field(factory=trio.Event, init=False)  # `run` has returned
    _uncertain: set[int] = attrs.field(factory=set[int], init=False)  # sent, and no reply came
    _alone: int = attrs.field(default=0, init=False)  # so many settlements go one by one
    _failures: int = attrs.field(default=0, init=False)
    _closing: bool = attrs.field(default=False, init=False)

    async def run(self) -> None:
        """Returns after `close`, once every settlement is in the store."""
        while not self._closing or self.desk.has_ended:
            await self._wait_for_cause()
            await self._visit()
        self.finished.set()

    def close(self) -> None:
        self._closing = True
        self.desk.cause.set()

    async def _wait_for_cause(self) -> None:
        if not self.desk.has_a_load:
            await trio.lowlevel.checkpoint()  # whoever can run now may add to this visit
        while not (self._closing or self.desk.has_cause()):
            self.desk.cause = trio.Event()
            with trio.CancelScope(deadline=self.desk.next_poll_local) as poll:
                await self.desk.cause.wait()
            if poll.cancelled_caught:
                self.desk.appetite.poll_due()

    async def _visit(self) -> None:
        ended, request = self._load()
        if not ended and request is None:
            return
        sent_boottime = self.boottime()
        settlements = [one.settlement for one in ended]
        try:
            exchange = await self.engine.exchange(settlements, request, trio.current_time())
        except InputRefused as error:
            self._put_refused_back(ended, error)
            if not ended:  # a row that cannot be claimed as it stands
                await self._pause()
        except OutcomeUnknown:
            self._uncertain.update(one.id for one in settlements)
            self.desk.put_back(ended)
            await self._read_back(request, sent_boottime)
        except StoreError:
            self.desk.put_back(ended)
            await self._pause()
        else:
            self._failures = 0
            if request is not None:  # first: the leases of what was claimed are running already
                self._book_claims(exchange, request, sent_boottime)
            await self._book(_as_turned(ended, exchange.turned), exchange.rejected)

    def _load(self) -> tuple[list[Ended], ClaimRequest | None]:
        ended = self.desk.take_ended()
        if self._uncertain:
            ended = self._one_of_each_job(ended)
        if not self._alone:
            return ended, self.desk.request()
        self._alone -= 1
        self.desk.put_back(ended[1:])
        return ended[:1], None

    def _one_of_each_job(self, ended: list[Ended]) -> list[Ended]:
        """What comes back names jobs. An end whose reply was lost may be followed by that of the
        next claim of the same job: that one goes with the next visit.
        """
        first = {one.settlement.id: one for one in reversed(ended)}
        self.desk.put_back([one for one in ended if first[one.settlement.id] is not one])
        return [one for one in ended if first[one.settlement.id] is one]

    def _book_claims(self, exchange: Exchange, request: ClaimRequest, sent_boottime: float) -> None:
        appetite, claims = self.desk.appetite, exchange.claims
        self.desk.book_claims(claims, sent_boottime)
        appetite.no_room = exchange.full
        if appetite.note_claim(len(claims), request.batch, exchange.parked):
            self.on_delay()

    async def _book(self, ended: list[Ended], rejected: frozenset[int]) -> None:
        if not rejected:
            self.desk.book_ended(ended)
        else:
            stale = rejected - await self._written_before(ended, rejected)
            self.desk.book_ended([one for one in ended if one.settlement.id not in stale])
            self.desk.book_stale([one for one in ended if one.settlement.id in stale])
        if any(one.settlement.delay_seconds is not None for one in ended):
            self.on_delay()
        if self._uncertain:
            self._uncertain.difference_update(one.settlement.id for one in ended)

    async def _written_before(
        self, ended: Sequence[Ended], rejected: frozenset[int]
    ) -> frozenset[int]:
        """Rejected settlements that are in the store all the same: an earlier sending arrived, its
        reply did not.
        """
        doubtful = [
            one.settlement for one in ended if one.settlement.id in rejected & self._uncertain
        ]
        if not doubtful:
            return frozenset()
        return await self._insist(lambda: self.engine.settled_already(doubtful))

    async def _read_back(self, request: ClaimRequest | None, sent_boottime: float) -> None:
        """After a lost reply: what has been claimed is ours, and is worked on."""
        await self._pause()
        if request is not None:
            token = request.token
            claims = await self._insist(lambda: self.engine.claims_under(token))
            self.desk.book_claims(claims, sent_boottime)

    def _put_refused_back(self, ended: list[Ended], error: InputRefused) -> None:
        """The store refuses the values of one of these: they go one by one, and the culprit fails
        its own job.
        """
        if len(ended) == 1:
            failed = _as_failed(ended[0], error)
            if failed.settlement == ended[0].settlement:
                self.desk.abandon(failed)  # even this is refused
                return
            ended = [failed]
        self._alone = len(ended)
        self.desk.put_back(ended)

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await ask()
            except StoreError:
                await self._pause()

    async def _pause(self) -> None:
        seconds = min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * 2.0 ** min(self._failures, 20))
        self._failures += 1
        await trio.sleep(seconds * self.dice.uniform(0.5, 1.0))


def _as_turned(ended: list[Ended], turned: Mapping[int, JobState]) -> list[Ended]:
    """As the store has them: a request made another end of these than was meant."""
    if not turned:
        return ended
    return [
        one._replace(report=turned_report(one.report, turned[one.settlement.id]))
        if one.settlement.id in turned
        else one
        for one in ended
    ]


def _as_failed(one: Ended, error: InputRefused) -> Ended:
    note = error_json("result_invalid", str(error), REFUSED_BYTES_MAX)
    state, outcome = JobState.FAILED, AttemptOutcome.FAILED
    settlement = one.settlement._replace(
        state=state, outcome=outcome, result=None, error=note, reason=None, delay_seconds=None,
        forgive=False, phase=_failed_phase(one.settlement.phase),
    )  # fmt: skip
    report = one.report._replace(state=state, outcome=outcome, error=note)
    return one._replace(settlement=settlement, report=report)


def _failed_phase(phase: PhaseEnd | None) -> PhaseEnd | None:
    return None if phase is None else PhaseEnd(phase.name, PhaseState.FAILED)
