"""The duty of comparing each hour with the model once it is over, and so of knowing how far
simulations may be trusted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from zlib import crc32

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.settings import LiveSettings
from musterd.manager.duties.small_steps import InSmallSteps
from musterd.manager.log import Log, event
from musterd.manager.scaling.guard import is_on as is_guarding
from musterd.manager.scaling.model.past_hour import (
    ATTEMPTS_MAX,
    HOUR_SECONDS,
    LEAD_SECONDS,
    TOO_MANY,
    Window,
    compared,
    taking,
    window_of,
)
from musterd.manager.scaling.model.reading import TRACED, TraceReader
from musterd.manager.scaling.model.settings import ModelSettings, model_settings
from musterd.store.compared_hours import ComparedHour
from musterd.store.engine import Engine
from musterd.store.event_pages import order_all, pages_between, position_at
from musterd.store.history import STEP_SECONDS
from musterd.store.scaling_journal import JournalRun

LOOK_SECONDS = 60.0  # between two looks at whether it is time, which ask the store nothing
LATE_SECONDS = 60.0  # after its end an hour is read: all that happened in it is in the log
SPREAD_SECONDS = 300.0  # and tenants come one after the other
RUN_SHARE = 0.5  # of the longest run of a duty
PAGE_PAUSE_SECONDS = 0.05  # to decode a page takes the loop some milliseconds
PORTION, PORTION_ROWS_MAX = timedelta(minutes=5), 1_000  # of the journal
NODES_MAX = 100
KEEP_HOURS_MIN = 1.5  # of events: an hour, what goes before it, and the time until it is read


@attrs.define(eq=False)
class PastHours:
    """Owned by its tenant. Each node knows for itself since when its settings are in force: one
    that does not hold the duty takes each reload for a change. `publish` takes the model's error in
    the last hour; None = that is not known.
    """

    tenant: str
    engine: Engine
    settings: LiveSettings
    catalog: Callable[[], Catalog]
    wall_clock: Callable[[], float]
    compute: InSmallSteps
    publish: Callable[[float | None], None]
    log: Log
    _model: ModelSettings | None = attrs.field(default=None, init=False)  # None = nobody asked
    _since: float = attrs.field(init=False)  # it has been in force
    _last: float | None = attrs.field(default=None, init=False)  # when the hour last told of ended

    def __attrs_post_init__(self) -> None:
        self._since = self.wall_clock()
        self.settings.subscribe(self._settings_changed)

    @property
    def is_on(self) -> bool:
        """Whether there is a log to compare with, and a journal to write to."""
        settings = self.settings.now
        return settings.scaling.journal_days > 0 and settings.events.keep_hours >= KEEP_HOURS_MIN

    def forget(self) -> None:
        """Another node has the duty."""
        self._last = None
        self.publish(None)

    async def run(self) -> int:
        """Compares the last hour that is over, once; returns how many hours were compared."""
        if self._model is None:
            self._model = self._present()
        late_seconds = LATE_SECONDS + crc32(self.tenant.encode()) % SPREAD_SECONDS
        now = self.wall_clock() - late_seconds
        until = now - now % HOUR_SECONDS
        if until == self._last:
            return 0
        hour, is_new = await self._known(until), False
        if hour is None:
            hour = await self._hour(until)
            is_new = hour is not None
        self._last = until
        self.publish(None if hour is None else hour.error_ratio)
        return int(is_new)

    def _settings_changed(self) -> None:
        model = self._present()
        if model != self._model:
            self._model, self._since = model, self.wall_clock()

    def _present(self) -> ModelSettings:
        return model_settings(self.settings.now, self.catalog())

    async def _known(self, until: float) -> ComparedHour | None:
        """The hour, if another node has compared it, or this one before its start."""
        newest = await self.engine.journal.hours(None, None, 1)
        of_it = (one for one in newest if one.at.timestamp() == until - HOUR_SECONDS)
        return next(of_it, None)

    async def _hour(self, until: float) -> ComparedHour | None:
        """None = nothing happened in it."""
        ended = await self._ended(until)
        if not sum(number for _, number in ended):
            return None
        window = window_of(ended, until)
        unfit = self._unfit(until - HOUR_SECONDS) or (TOO_MANY if window is None else None)
        hour = None
        if window is not None and unfit is None:
            limit_seconds = self.settings.now.duties.run_limit_seconds * RUN_SHARE
            unfit = f"it took longer than {limit_seconds:g} s"
            with trio.move_on_after(limit_seconds):
                hour, unfit = await self._compared(window), None
        if unfit is not None:
            event(self.log, logging.INFO, "hour not compared with the model", why=unfit)
            hour = ComparedHour(datetime.fromtimestamp(until - HOUR_SECONDS, UTC), skipped=unfit)
        if hour is not None:
            await self.engine.journal.write_hour(hour)
        return hour

    def _unfit(self, begun: float) -> str | None:
        """Why what happened since then is not to be compared with the settings of now."""
        mode = self.settings.now.scaling.mode
        if mode != "active":
            return f"scaling.mode is {mode}"
        if self._since > begun:
            return "its settings have not been in force for all of it"
        return None

    async def _ended(self, until: float) -> Sequence[tuple[float, int]]:
        """How many attempts ended in each step of the hour, and of the time before it."""
        since = until - HOUR_SECONDS - LEAD_SECONDS
        past = await self.engine.history.read(STEP_SECONDS, since, until, by_kind=False)
        return [
            (row.at, one.succeeded + one.failed + one.canceled + one.retried)
            for row in past.kinds
            for one in (row.ended,)
        ]

    async def _compared(self, window: Window) -> ComparedHour | None:
        log, reader = self.engine.events, TraceReader(2 * ATTEMPTS_MAX)
        newest = await order_all(log)
        since, until = (datetime.fromtimestamp(one, UTC) for one in (window.since, window.until))
        start, end = [await position_at(log, moment, newest) for moment in (since, until)]
        async for page in pages_between(log, TRACED, start, end):
            await self.compute(taking(reader, page))
            await trio.sleep(PAGE_PAUSE_SECONDS)
        if is_guarding(self.settings.now.scaling.guard):
            reader.take_journal(await self._decisions(since, until))
        nodes = sum(one.claims for one in await self.engine.nodes.all())
        present = attrs.evolve(self._present(), nodes=min(max(1, nodes), NODES_MAX))
        return await self.compute(compared(reader, present, window))

    async def _decisions(self, since: datetime, until: datetime) -> Sequence[JournalRun]:
        """In portions, as events are read."""
        found: list[JournalRun] = []
        while since < until:
            end = since + PORTION
            found += await self.engine.journal.read(since, end, PORTION_ROWS_MAX)
            since = end
            await trio.sleep(PAGE_PAUSE_SECONDS)
        return found
