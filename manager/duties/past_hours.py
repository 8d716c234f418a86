"""A part of the duty of statistics. Each hour is compared with the model once it is over: how far
simulations may be trusted, and what the candidate would have made of that hour.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from zlib import crc32

import attrs
import trio

from musterd.catalog.kinds import Catalog
from musterd.config.settings import LiveSettings
from musterd.manager.duties.duty import STATISTICS
from musterd.manager.duties.small_steps import InSmallSteps
from musterd.manager.log import Log, event, extra
from musterd.manager.scaling.candidate import candidate_of
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
from musterd.store.errors import StoreError
from musterd.store.event_pages import order_all, pages_between, position_at
from musterd.store.history import STEP_SECONDS
from musterd.store.scaling_journal import JournalRun

LATE_SECONDS = 60.0  # after its end an hour is read: all that happened in it is in the log
SPREAD_SECONDS = 120.0  # and tenants come one after the other
RUN_SHARE = 0.2  # of the longest run of a duty: what else is done in it has to wait
PAGE_ROWS, PAGE_PAUSE_SECONDS = 200, 0.02  # a page takes the store and the loop a few milliseconds
PORTION, PORTION_ROWS_MAX = timedelta(minutes=5), 1_000  # of the journal
NODES_MAX = 100
KEEP_HOURS_MIN = 1.5  # of events: an hour, what goes before it, and the time until it is read


@attrs.define(eq=False)
class PastHours:
    """Owned by a tenancy. Each node knows for itself since when its settings are in force: one
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
    def _is_on(self) -> bool:
        """Whether there is a log to compare with, and a journal to write to."""
        settings = self.settings.now
        return settings.scaling.journal_days > 0 and settings.events.keep_hours >= KEEP_HOURS_MIN

    def forget(self) -> None:
        """Another node has the duty, or nobody compares."""
        self._last = None
        self.publish(None)

    async def compare_if_due(self) -> None:
        """Compares the last hour that is over, once; asks the store nothing until it is over."""
        if not self._is_on:
            if self._last is not None:
                self.forget()
            return
        if self._model is None:
            self._model = self._present()
        late_seconds = LATE_SECONDS + crc32(self.tenant.encode()) % SPREAD_SECONDS
        now = self.wall_clock() - late_seconds
        until = now - now % HOUR_SECONDS
        if until != self._last:
            hour = await self._known(until) or await self._hour(until)
            self._last = until
            self.publish(None if hour is None else hour.error_ratio)

    def _settings_changed(self) -> None:
        model = self._present()
        if model != self._model:
            self._model, self._since = model, self.wall_clock()

    def _present(self, nodes: int = 1) -> ModelSettings:
        return model_settings(self.settings.now, self.catalog(), nodes)

    def _candidate(self, nodes: int) -> ModelSettings | None:
        settings = candidate_of(self.settings.now)
        return None if settings is None else model_settings(settings, self.catalog(), nodes)

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
            try:
                with trio.move_on_after(limit_seconds):
                    hour, unfit = await self._compared(window), None
            except StoreError:
                raise
            except Exception:
                # The statistics must not suffer from it.
                self.log.exception("comparing an hour failed", extra=extra(duty=STATISTICS))
                unfit = "a fault of musterd: its log has the traceback"
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
        pages = pages_between(log, TRACED, start, end, rows_max=PAGE_ROWS)
        async with aclosing(pages):
            async for page in pages:
                await self.compute(taking(reader, page))
                await trio.sleep(PAGE_PAUSE_SECONDS)
        if is_guarding(self.settings.now.scaling.guard):
            reader.take_journal(await self._decisions(since, until))
        nodes = sum(one.claims for one in await self.engine.nodes.all())
        nodes = min(max(1, nodes), NODES_MAX)
        return await self.compute(
            compared(reader, self._present(nodes), window, self._candidate(nodes))
        )

    async def _decisions(self, since: datetime, until: datetime) -> Sequence[JournalRun]:
        """In portions, as events are read."""
        found: list[JournalRun] = []
        while since < until:
            end = since + PORTION
            found += await self.engine.journal.read(since, end, PORTION_ROWS_MAX)
            since = end
            await trio.sleep(PAGE_PAUSE_SECONDS)
        return found
