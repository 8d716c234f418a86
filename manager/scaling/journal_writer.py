"""Writes a node's decisions into the store, a few seconds later, runs of like ones as one row."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

import attrs
import trio

from musterd.config.settings import LiveSettings
from musterd.manager.log import Log, event
from musterd.manager.node.status import Decision
from musterd.manager.scaling.journal import (
    JournalPage,
    Period,
    Run,
    packed,
    page_of,
    row_of,
    run_of,
)
from musterd.store.errors import StoreError
from musterd.store.scaling_journal import JournalRun, ScalingJournal
from musterd.store.waiting import WriteLoop

WRITE_SECONDS = 5.0  # between two writes, at least
AWAY_SECONDS_MAX = 30.0
WAITING_MAX = 2_000  # runs: half an hour of a store that is away, if no two ticks are alike
BATCH = 500
HOURS_MAX = 48  # on a page, the newest
FINISH_SECONDS = 2.0


@attrs.define(eq=False)
class JournalWriter:
    """Owned by a tenancy. While the store is away, it drops and counts the oldest runs beyond a
    limit.
    """

    store: ScalingJournal
    settings: LiveSettings  # of the tenant
    log: Log
    node: str
    node_id: UUID
    _waiting: dict[float, Run] = attrs.field(factory=dict[float, Run], init=False)  # by first tick
    _latest: Run | None = attrs.field(default=None, init=False)
    _dropped: int = attrs.field(default=0, init=False)  # decisions
    _loop: WriteLoop = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._loop = WriteLoop(
            self._write, lambda: bool(self._waiting), WRITE_SECONDS, AWAY_SECONDS_MAX
        )

    def note(self, decision: Decision) -> None:
        """Returns at once."""
        if not self.settings.now.scaling.journal_days:
            self._latest = None
            return
        longer = self._latest and self._latest.extended(decision)
        run = longer or run_of(decision)
        self._latest = self._waiting[run.first.at] = run
        if len(self._waiting) > WAITING_MAX:
            self._dropped += self._waiting.pop(next(iter(self._waiting))).ticks
        self._loop.bell.ring()

    @property
    def waiting(self) -> Sequence[JournalRun]:
        """What the store does not have yet, the oldest first."""
        return [self._row(run) for run in self._waiting.values()]

    async def read(self, period: Period, latest: Sequence[Decision]) -> JournalPage:
        """The journal of all nodes, with what this one has not written yet. `latest`: decisions of
        this node, which alone are known while the store is away, or if it keeps none.
        """
        if self.settings.now.scaling.journal_days:
            try:
                asked = period.since, period.until, period.limit + 1
                page = page_of(period, await self.store.read(*asked), self.waiting)
                since = page.hours_since(period.since)
                hours = await self.store.hours(since, period.until, HOURS_MAX)
                return attrs.evolve(page, hours=hours)
            except StoreError:
                pass  # the engine has logged it
        await trio.lowlevel.checkpoint()
        known = page_of(period, (), packed(latest, self.node_id, self.node))
        return attrs.evolve(known, is_whole=False)

    async def run(self) -> None:
        await self._loop.run()

    async def finish(self) -> None:
        """Writes what waits, within a time limit; nothing may be noted afterwards."""
        await self._loop.finish(FINISH_SECONDS)
        self._dropped += sum(run.ticks for run in self._waiting.values())
        self._waiting.clear()
        self._log_dropped()

    async def _write(self) -> bool:
        """Writes a batch; False = the store is away. What may have been written is written again:
        that changes nothing.
        """
        batch = list(self._waiting.values())[:BATCH]
        if not batch:
            return True
        try:
            await self.store.write([self._row(run) for run in batch])
        except StoreError:
            return False  # the engine has logged it
        for run in batch:
            if self._waiting.get(run.first.at) is run:  # else it has grown meanwhile
                del self._waiting[run.first.at]
        self._log_dropped()
        return True

    def _row(self, run: Run) -> JournalRun:
        return row_of(run, self.node_id, self.node)

    def _log_dropped(self) -> None:
        if self._dropped:
            phrase = "decisions missing in the scaling journal"
            event(self.log, logging.WARNING, phrase, count=self._dropped)
            self._dropped = 0
