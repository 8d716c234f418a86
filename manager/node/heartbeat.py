"""A node's heartbeat in the store: its crew, its kinds, and how long their jobs take."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import attrs
import trio

from musterd import __version__
from musterd.manager.node.status import TenantStatus
from musterd.manager.scaling.service_times import KINDS_SECONDS, ServiceTimes
from musterd.manager.tenancy.deps import TenancyDeps
from musterd.store.errors import StoreError
from musterd.store.nodes import HEARTBEAT_SECONDS, RESTING_SECONDS, Beat, kinds_text
from musterd.store.waiting import Bell
from musterd.workers.idleness import Idleness, IdleState, Move

FIRST_SECONDS = 0.1  # the crew has been hired by then
WAIT_SECONDS_MIN = 0.1
LOOK_SECONDS = 5.0  # with a hundred idle tenants every look counts: what is new wakes it
EARLY_SECONDS = 0.01  # so much before its time it is as good as due
NEWS_SECONDS = 0.5  # a change of crew or pace is told, but not more often than this
RETRY_SECONDS = 2.0
SETTLING_SECONDS = 0.1  # a newly hired worker has found work by then
LEAVE_SECONDS = 1.0


@attrs.define(eq=False)
class Heartbeat:
    """Owned by a tenancy: the node's row in that tenant's store. A node that ends without draining
    keeps its row, and counts as dead once the row is too old.
    """

    deps: TenancyDeps
    status: Callable[[], TenantStatus]
    times: ServiceTimes
    idleness: Idleness  # where the node scans the queue, few signs of life do
    wish: Callable[[], int | None]  # how many workers the last decision wished for
    bell: Bell = attrs.field(factory=Bell, init=False)  # others should learn of a change soon
    _started_local: float = attrs.field(factory=trio.current_time, init=False)
    _sent: Beat | None = attrs.field(default=None, init=False)
    _sent_local: float = attrs.field(default=float("-inf"), init=False)
    _kinds: str | None = attrs.field(default=None, init=False)
    _kinds_local: float = attrs.field(default=float("-inf"), init=False)

    def __attrs_post_init__(self) -> None:
        self.deps.settings.subscribe(self.bell.ring)
        self.idleness.on_move(self._wake_if_scan_changed)

    def _wake_if_scan_changed(self, move: Move) -> None:
        scanned = (IdleState.SCANNED, IdleState.RESTING)
        if (move.before in scanned) != (move.after in scanned):
            self.bell.ring()

    async def run(self) -> None:
        try:
            await trio.sleep(FIRST_SECONDS)
            while True:
                await self._beat_if_due()
                await self._wait()
        finally:
            if self.status().phase in ("draining", "stopped"):
                # If the store is away, the node counts as dead soon.
                with trio.move_on_after(LEAVE_SECONDS, shield=True), suppress(StoreError):
                    await self.deps.engine.nodes.leave(self.deps.node_id)

    async def _wait(self) -> None:
        sent = self._sent
        due_local = self._sent_local + self._pause_seconds(self._beat())
        left_seconds = min(LOOK_SECONDS, due_local - trio.current_time())
        await self.bell.wait(max(WAIT_SECONDS_MIN, left_seconds))
        if self.bell.is_rung and sent is not None and sent.phase == self.status().phase:
            await trio.sleep(SETTLING_SECONDS)
        self.bell.clear()

    async def _beat_if_due(self) -> None:
        now, beat = trio.current_time(), self._beat()
        quiet_seconds = now - self._sent_local
        if quiet_seconds < self._pause_seconds(beat):
            return
        kinds = self._kinds_if_due(now)
        self._sent_local = now
        try:
            load = self.deps.load()
            await self.deps.engine.nodes.beat(attrs.evolve(beat, kinds=kinds, load=load))
        except StoreError:
            self._sent = self._kinds = None  # the store's watcher has told the log
            return
        self._sent = beat
        if kinds is not None:
            self._kinds, self._kinds_local = kinds, now

    def _pause_seconds(self, beat: Beat) -> float:
        sent = self._sent
        if sent is None:  # the store is away
            return RETRY_SECONDS
        if sent.phase != beat.phase:
            return 0.0
        if _gist(sent) != _gist(beat):
            return NEWS_SECONDS
        return beat.pause_seconds - EARLY_SECONDS

    def _kinds_if_due(self, now: float) -> str | None:
        if self._kinds is not None and now - self._kinds_local < KINDS_SECONDS:
            return None
        text = kinds_text(
            {
                name: self.times.known(name, kind.broken, kind.max_running)
                for name, kind in self.deps.catalog().items()
            },
            self.deps.settings.now.limits.max_running or None,
        )
        # Now and then also unchanged: the row may have been forgotten while the machine slept.
        is_old = now - self._kinds_local >= 6 * KINDS_SECONDS
        return text if text != self._kinds or is_old else None

    def _beat(self) -> Beat:
        deps, seen = self.deps, self.status()
        configured, is_resting = deps.configured(), self.idleness.is_scanned
        return Beat(
            id=deps.node_id, name=deps.node, version=__version__, phase=seen.phase,
            up_seconds=trio.current_time() - self._started_local,
            idle=seen.idle, busy=seen.busy, retiring=seen.retiring,
            default_count=seen.default_count, max_count=seen.max_count,
            pause_seconds=RESTING_SECONDS if is_resting and not seen.busy else HEARTBEAT_SECONDS,
            config_generation=configured.generation, config_hash=configured.hash,
            wish=self.wish(),
        )  # fmt: skip


def _gist(beat: Beat) -> tuple[object, ...]:
    """What others should learn soon. How many are busy changes with every job, so that waits."""
    configured = (beat.config_generation, beat.config_hash)
    crew = (beat.idle + beat.busy, beat.default_count, beat.max_count)
    return (*crew, beat.pause_seconds, *configured)
