"""Exchanges settlements for claims between the desk and the store.

What gathers during one exchange goes with the next, so batches grow with the load and a single job
waits for nobody. Once a whole batch has gathered it need not wait for the exchange under way: a
second one goes beside it, so that the store has work while this process reads a reply. A failed
exchange loses nothing: settlements stay at the desk, and claims whose reply was lost are read back
by their token. An end whose job, or its target, somebody else keeps in an open transaction is put
aside and tried again, and the others go on.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

import attrs
import trio

from musterd.store.errors import InputRefused, OutcomeUnknown, StoreError
from musterd.store.leases import EXCHANGES_AT_ONCE, Ends, Leases, Settlement
from musterd.store.lifecycle import AttemptOutcome, JobState
from musterd.store.phases import PhaseEnd, PhaseState
from musterd.store.waiting import Backoff, own_backoff
from musterd.workers.claiming.desk import Desk, Load
from musterd.workers.claiming.held import Ended, successes
from musterd.workers.outcome import Contained, error_json, log_contained

T = TypeVar("T")

ASIDE_SECONDS = 0.25  # until an end that was held up is tried again
PAUSE_SECONDS = 0.1  # after a failed visit, doubled with each further one
PAUSE_SECONDS_MAX = 2.0
REFUSED_BYTES_MAX = 2000


@attrs.define(eq=False)
class ExchangeLoop:
    """Owned by a tenancy, beside its desk. `on_delay` is called when the next due time may have
    changed: the queue has run dry after work or a hint, or a job was put off.
    """

    desk: Desk
    leases: Leases
    boottime: Callable[[], float]
    rng: random.Random
    on_delay: Callable[[], None]
    contained: Callable[[Contained], None] = log_contained
    finished: trio.Event = attrs.field(factory=trio.Event, init=False)  # `run` has returned
    # Sent, and no reply came: the job and the token of its claim.
    _uncertain: set[tuple[int, UUID]] = attrs.field(factory=set[tuple[int, UUID]], init=False)
    _under_way: int = attrs.field(default=0, init=False)  # exchanges
    _aside: list[Ended] = attrs.field(factory=list[Ended], init=False)  # held up
    _has_aside: trio.Event = attrs.field(factory=trio.Event, init=False)
    _attending: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _alone: int = attrs.field(default=0, init=False)  # so many settlements go one by one
    _backoff: Backoff = own_backoff(PAUSE_SECONDS, PAUSE_SECONDS_MAX)
    _closing: bool = attrs.field(default=False, init=False)

    async def run(self) -> None:
        """Returns after `close`, once every settlement is in the store."""
        async with trio.open_nursery() as beside:
            beside.start_soon(self._bring_back)
            async with trio.open_nursery() as nursery:
                for _ in range(EXCHANGES_AT_ONCE):
                    nursery.start_soon(self._exchange_again_and_again)
            beside.cancel_scope.cancel()
        self.finished.set()

    def close(self) -> None:
        self._closing = True
        self.desk.wake_loop()

    async def _exchange_again_and_again(self) -> None:
        while not self._closing or self.desk.has_ended or self._aside:
            async with self._attending:  # one sees when to leave, while others are under way
                await self._wait_for_cause()
                load = self._load()
                self._under_way += 1
            try:
                if not load.is_empty:
                    await self._exchange(load)
            finally:
                self._under_way -= 1
                self.desk.unload(load)

    async def _wait_for_cause(self) -> None:
        if self.desk.has_ended and not self.desk.has_gathered(0.5):
            await trio.lowlevel.checkpoint()  # tasks that can run now may add to this exchange
        while not self._has_cause():
            await self.desk.wait_for_change(may_poll=not self._under_way)

    def _has_cause(self) -> bool:
        if self._under_way:
            return self.desk.has_gathered(1)
        return self.desk.has_cause or (self._closing and not self._aside)

    def _load(self) -> Load:
        if self._alone:
            self._alone -= 1
            ended = self.desk.take_ended()
            self.desk.put_back(ended[1:])
            return Load(ended[:1], [], None, None)
        load = self.desk.load(is_first=not self._under_way)
        jobs = {one.claim.id for one in load.succeeded}
        jobs.update(one.settlement.id for one in load.ended)
        if len(jobs) == len(load.ended) + len(load.succeeded):
            return load
        ended = load.ended + [one.succeeded() for one in load.succeeded]
        return load._replace(ended=self._one_of_each_job(ended), succeeded=[])

    def _one_of_each_job(self, ended: list[Ended]) -> list[Ended]:
        """What comes back names jobs. An end whose reply or lease was lost may be followed by that
        of the next claim of the same job: that one goes with the next exchange.
        """
        first = {one.settlement.id: one for one in reversed(ended)}
        self.desk.put_back([one for one in ended if first[one.settlement.id] is not one])
        return [one for one in ended if first[one.settlement.id] is one]

    async def _exchange(self, load: Load) -> None:
        sent_boottime = self.boottime()
        try:
            await self._visit(load, sent_boottime)
        except OutcomeUnknown:
            await self._find_out(load, sent_boottime)
        except Exception as error:  # noqa: BLE001 - whatever broke: it costs this visit
            self.contained(Contained("exchange", None, None, error))
            await self._find_out(load, sent_boottime)
            await self._set_aside(load, error)

    async def _visit(self, load: Load, sent_boottime: float) -> None:
        ends = Ends([one.settlement for one in load.ended], successes(load.succeeded))
        try:
            answer = await self.leases.exchange(ends, load.request)
        except InputRefused as error:
            self._put_refused_back(load, error)
            if load.is_claim_alone:
                await self._set_aside(load, error)
        except OutcomeUnknown:
            raise
        except StoreError:
            self.desk.put_back(load.all_ended())
            await self._backoff.sleep()
        else:
            self._backoff.succeeded()
            if load.request is not None:  # first: the leases of what was claimed are running
                self.desk.hear_time(answer.now_epoch, sent_boottime)
                self.desk.book_claims(answer.claims, sent_boottime)
                if self.desk.book_look(load, answer, beside_another=self._under_way > 1):
                    self.on_delay()
                if load.is_claim_alone and len(answer.claims) == 1:
                    await _let_it_begin()
            if answer.rejected or answer.held_up or not load.succeeded:
                ended = self._put_aside(load.all_ended(), answer.held_up)
                await self._book(_as_turned(ended, answer.turned), answer.rejected)
            else:
                self.desk.book_succeeded(load.succeeded, ends.successes)
                await self._book(_as_turned(load.ended, answer.turned), answer.rejected)

    def _put_aside(self, ended: list[Ended], held_up: frozenset[int]) -> list[Ended]:
        """Gives the others."""
        if not held_up:
            return ended
        aside = [one for one in ended if one.settlement.id in held_up]
        self.desk.book_held_up(aside)
        self._aside += aside
        self._has_aside.set()
        return [one for one in ended if one.settlement.id not in held_up]

    async def _bring_back(self) -> None:
        while True:
            await self._has_aside.wait()
            await trio.sleep(ASIDE_SECONDS)
            aside, self._aside = self._aside, []
            self._has_aside = trio.Event()
            self.desk.put_back(aside)
            self.desk.wake_loop()

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
            known = ((one.settlement.id, one.settlement.token) for one in ended)
            self._uncertain.difference_update(known)

    async def _written_before(
        self, ended: Sequence[Ended], rejected: frozenset[int]
    ) -> frozenset[int]:
        """Rejected settlements that are in the store all the same: an earlier sending arrived, its
        reply did not.
        """
        doubtful = [
            one.settlement
            for one in ended
            if one.settlement.id in rejected
            and (one.settlement.id, one.settlement.token) in self._uncertain
        ]
        if not doubtful:
            return frozenset()
        return await self._insist(lambda: self.leases.settled_already(doubtful))

    async def _find_out(self, load: Load, sent_boottime: float) -> None:
        """After a lost reply: ends are sent again, and what has been claimed is ours, and is worked
        on. What cannot even be read back is left to its lease.
        """
        ended = load.all_ended()
        self._uncertain.update((one.settlement.id, one.settlement.token) for one in ended)
        self.desk.put_back(ended)
        await self._backoff.sleep()
        try:
            if load.request is not None:
                await self._read_back(load.request.token, sent_boottime)
        except Exception as error:  # noqa: BLE001 - whatever broke
            self.contained(Contained("exchange", None, None, error))

    async def _set_aside(self, load: Load, refused: Exception) -> None:
        """What stands in the way of this claim and of all others, if it does."""
        if load.request is None:
            return
        failed: list[Settlement] = []
        try:
            failed = await self.leases.set_aside(load.request)
        except StoreError:
            pass  # the claim is made again, and refused again
        except Exception as error:  # noqa: BLE001 - whatever broke
            self.contained(Contained("exchange", None, None, error))
        self.desk.book_refused_claim(str(refused), failed)
        if not failed:
            await self._backoff.sleep()

    async def _read_back(self, token: UUID, sent_boottime: float) -> None:
        claims = await self._insist(lambda: self.leases.claims_under(token))
        self.desk.book_claims(claims, sent_boottime)
        if claims:
            self.desk.poll()

    def _put_refused_back(self, load: Load, error: InputRefused) -> None:
        """The store refuses the values of one of these: they go one by one and without a claim, and
        the culprit fails its own job.
        """
        ended = load.all_ended()
        if len(ended) == 1 and load.request is None:
            failed = _as_failed(ended[0], error)
            if failed.settlement == ended[0].settlement:
                self.desk.abandon(failed)  # even this is refused
                self._uncertain.discard((failed.settlement.id, failed.settlement.token))
                return
            ended = [failed]
        self._alone = len(ended)
        self.desk.put_back(ended)

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await ask()
            except InputRefused:  # by no pause
                raise
            except StoreError:
                await self._backoff.sleep()


async def _let_it_begin() -> None:
    """The worker of a single claim goes on before the next exchange is made up, 0.13 ms sooner.
    A task that the first checkpoint wakes with this one is through when the second one returns.
    """
    await trio.lowlevel.checkpoint()
    await trio.lowlevel.checkpoint()


def _as_turned(ended: list[Ended], turned: Mapping[int, JobState]) -> list[Ended]:
    """As the store has them: a request made another end of these than was meant."""
    if not turned:
        return ended
    return [
        one._replace(settlement=_turned(one.settlement, turned[one.settlement.id]))
        if one.settlement.id in turned
        else one
        for one in ended
    ]


def _turned(settlement: Settlement, state: JobState) -> Settlement:
    """Of an attempt that another would have followed, had nobody asked to cancel or pause it."""
    outcome = settlement.outcome
    if outcome is AttemptOutcome.RETRYING:
        outcome = AttemptOutcome.FAILED
    return settlement._replace(state=state, outcome=outcome)


def _as_failed(one: Ended, error: InputRefused) -> Ended:
    note = error_json("result_invalid", str(error), REFUSED_BYTES_MAX)
    state, outcome = JobState.FAILED, AttemptOutcome.FAILED
    settlement = one.settlement._replace(
        state=state, outcome=outcome, result=None, error=note, reason=None, delay_seconds=None,
        forgive=False, phase=_failed_phase(one.settlement.phase), spent=None, log=None,
        percent=None, note=None,
    )  # fmt: skip
    return one._replace(settlement=settlement)


def _failed_phase(phase: PhaseEnd | None) -> PhaseEnd | None:
    return None if phase is None else PhaseEnd(phase.name, PhaseState.FAILED)
