"""The duty of reaping: ends expired leases. The store ends each once, so two reapers do no harm."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.settings import LiveSettings, lease_plan
from musterd.store.engine import Engine
from musterd.store.leases import Reaped, ReapRequest, ReapRule
from musterd.store.lifecycle import JobState
from musterd.store.waiting import Bell
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.observer import JobObserver
from musterd.workers.idleness import Idleness, IdleState, Move


@attrs.define(eq=False)
class Reaper:
    """Takes its rules from the current catalog. While hints or the node's scan report expiring
    leases, it looks only for leases that this node held within the last two lease times.
    """

    engine: Engine
    desk: Desk
    idleness: Idleness
    observer: JobObserver
    catalog: Callable[[], Catalog]
    settings: LiveSettings
    _held_local: float = attrs.field(default=float("-inf"), init=False)
    _bell: Bell = attrs.field(factory=Bell, init=False)

    def __attrs_post_init__(self) -> None:
        self.settings.subscribe(self.wake)  # a kind may have lost its limit
        self.idleness.on_news(self._wake_if_held)
        self.idleness.on_move(self._end_listening)

    async def run(self) -> int:
        """One batch; returns how many leases were ended."""
        reaped = await self.engine.leases.reap(self._request())
        if reaped:
            self._report(reaped)
        return len(reaped)

    async def wait(self, seconds: float) -> None:
        await trio.sleep(seconds)
        if self.idleness.is_notified and not self._may_have_lost_some():
            await self._bell.wait()
        self._bell.clear()

    def wake(self) -> None:
        """Leases may have expired."""
        self._bell.ring()

    def _wake_if_held(self) -> None:
        if self.desk.held:
            self._bell.ring()

    def _end_listening(self, move: Move) -> None:
        if move.before is IdleState.LISTENING:
            self._bell.ring()

    def _may_have_lost_some(self) -> bool:
        now = trio.current_time()
        if self.desk.held:
            self._held_local = now
        return now - self._held_local <= 2 * lease_plan(self.settings.now).lease_seconds

    def _request(self) -> ReapRequest:
        rules = {
            name: ReapRule(
                kind.on_lease_lost, kind.retry.max_retries + 1, capped=kind.max_running is not None
            )
            for name, kind in self.catalog().items()
        }
        now = self.settings.now
        default = ReapRule(now.leases.on_lease_lost, now.retry.max_retries + 1)
        return ReapRequest(rules, default, now.leases.reap_batch)

    def _report(self, reaped: list[Reaped]) -> None:
        self.observer.reaped(reaped)
        for one in reaped:
            held = self.desk.held.get(one.id)
            if held is not None and held.claim.attempt == one.attempt:
                self.desk.lose(held)  # our own lease: no need to find out by a renewal
        if any(one.state is JobState.QUEUED for one in reaped):
            self.desk.hint()
