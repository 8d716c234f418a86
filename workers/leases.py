"""Keeps the node's leases: one renewal for all of them each heartbeat, and the end of trust when
renewals fail.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import groupby
from uuid import UUID

import attrs
import trio

from musterd.config.settings import LeasePlan
from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.waiting import Bell
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.held import Held
from musterd.workers.claiming.observer import JobObserver

START_SECONDS = (
    0.1  # a job that has run this long without its start being written is marked as running
)
HOLDS_MAX = 1000  # renewals in one statement


@attrs.define(eq=False)
class LeaseKeeper:
    """Runs beside the crew to the very end of a drain. It never waits behind claims or settlements.

    `boottime` runs on through a suspend, so that a machine that slept knows that its leases may be
    gone. `unrenewed_since_local`: when the first renewal was sent that none that came through has
    followed; None = the last one did.
    """

    desk: Desk
    engine: Engine
    plan: LeasePlan
    boottime: Callable[[], float]
    observer: JobObserver
    unrenewed_since_local: float | None = attrs.field(default=None, init=False)
    _asked: set[int] = attrs.field(factory=set[int], init=False)  # jobs somebody wants something of
    # Claims whose work ignores a request.
    _reported: set[UUID] = attrs.field(factory=set[UUID], init=False)
    _bell: Bell = attrs.field(factory=Bell, init=False)

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._beat)
            nursery.start_soon(self._watch)
            nursery.start_soon(self._note_starts)
            nursery.start_soon(self._hear_requests)

    def ask(self, job_ids: Collection[int]) -> None:
        """Somebody may want one of these jobs canceled or paused: those held here are renewed at
        once, and the renewal tells.
        """
        here = self.desk.held.keys() & job_ids
        if here:
            self._asked |= here
            self._bell.ring()

    async def _hear_requests(self) -> None:
        while True:
            await self._bell.wait()
            self._bell.clear()
            asked, self._asked = self._asked, set()
            here = [held for held in map(self.desk.held.get, asked) if held is not None]
            await self._renew(here, extend=False)

    async def _beat(self) -> None:
        while True:
            if self.unrenewed_since_local is None:
                await self.desk.wait_until_held()
            await trio.sleep(self.plan.heartbeat_seconds)
            young = trio.current_time() - self.plan.heartbeat_seconds / 2
            ends_too_soon = self.boottime() + (
                self.plan.heartbeat_seconds + self.plan.request_timeout_seconds
            )
            due = [
                one
                for one in self.desk.held.values()
                if not one.lost
                and (one.claimed_local <= young or one.trusted_until <= ends_too_soon)
            ]
            await self._renew(due)
            if not due and self.unrenewed_since_local is not None:
                await self._renew_batch(due)  # of nothing: only whether it would come through

    async def _note_starts(self) -> None:
        """Jobs that were claimed ahead are seen as running soon after they start, not a heartbeat
        later.
        """
        while True:
            await self.desk.wait_until_held()
            await trio.sleep(START_SECONDS)
            started_before = trio.current_time() - START_SECONDS
            await self._renew(
                [
                    held
                    for held in self.desk.held.values()
                    if not held.start_written
                    and held.started_local is not None
                    and held.started_local <= started_before
                    and not (held.settling or held.lost)
                ],
                extend=False,
            )
            self.desk.give_back_stale(2 * START_SECONDS)

    async def _watch(self) -> None:
        """Ends trust in leases whose time is up, whatever the store says or does not say."""
        while True:
            await self.desk.wait_until_held()
            now = self.boottime()
            for held in [one for one in self.desk.held.values() if one.trusted_until <= now]:
                self.desk.lose(held)
            self._report_ignored()
            await trio.sleep(min(self.plan.margin_seconds, self.plan.heartbeat_seconds) / 2)

    def _report_ignored(self) -> None:
        now_local, reported = trio.current_time(), self._reported
        self._reported = set()  # without those that have ended since
        for held in self.desk.held.values():
            ignored = held.ignored(now_local)
            if ignored is None:
                continue
            if held.claim.token not in reported:
                self.observer.request_ignored(ignored)
            self._reported.add(held.claim.token)

    async def _renew(self, holds: list[Held], *, extend: bool = True) -> None:
        """Without `extend` it says what has started, and hears what is asked: for some jobs of a
        claim, whose lease would otherwise be split.
        """
        for some in _batches(holds):
            await self._renew_batch(some, extend=extend)

    async def _renew_batch(self, holds: list[Held], *, extend: bool = True) -> None:
        sent_boottime, sent_local = self.boottime(), trio.current_time()
        started = [held.started_local is not None for held in holds]
        if extend and self.unrenewed_since_local is None:
            self.unrenewed_since_local = sent_local
        lease_seconds = self.plan.lease_seconds if extend else None
        try:
            with trio.fail_after(self.plan.request_timeout_seconds):
                renewal = await self.engine.leases.renew(
                    [held.hold() for held in holds], lease_seconds
                )
        except (StoreError, trio.TooSlowError):
            return  # the watch ends what it must
        self.desk.hear_time(renewal.now_epoch, sent_boottime)
        if extend:
            self.unrenewed_since_local = None
        trusted_until = sent_boottime + self.plan.lease_seconds - self.plan.margin_seconds
        for held, was_started in zip(holds, started, strict=True):
            if held.claim.id in renewal.kept:
                held.renewed(
                    trusted_until if extend else held.trusted_until, start_written=was_started
                )
            elif self.desk.held.get(held.claim.id) is held:
                self.desk.lose(held)
        for held in holds:
            request = renewal.requests.get(held.claim.id)
            if request is not None and self.desk.held.get(held.claim.id) is held:
                self.desk.obey(held, request)


def _batches(holds: list[Held]) -> Iterator[list[Held]]:
    """Those of one claim together: the store keeps one lease for them."""
    batch: list[Held] = []
    for _, of_claim in groupby(holds, key=lambda held: held.claim.token):
        more = list(of_claim)
        if batch and len(batch) + len(more) > HOLDS_MAX:
            yield batch
            batch = []
        batch += more
    if batch:
        yield batch
