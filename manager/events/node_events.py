"""A tenancy's part in the event log: it adds events, keeps them in order, feeds readers; and
reports what becomes of jobs and duties to metrics, log and event log.
"""

from __future__ import annotations

import json
import logging
import random
from collections import deque
from collections.abc import Callable, Collection, Hashable, Sequence
from datetime import UTC, datetime

import attrs
import trio

from musterd import __version__
from musterd.config.settings import LiveSettings
from musterd.manager.duties.clock_watch import ClockWatch
from musterd.manager.duties.duty import DutyRun, rest_after
from musterd.manager.events.feed import Feed
from musterd.manager.log import Log, event, extra
from musterd.manager.metrics.history import HistoryWriter, QueueWatch
from musterd.manager.metrics.instruments import DutyMetrics, RunResult
from musterd.manager.node.status import Decision, decision_object
from musterd.manager.scaling.service_times import Arrivals, ServiceTimes
from musterd.manager.tenancy.deps import TenancyDeps
from musterd.store.errors import StoreError
from musterd.store.events import ORDERED_AT_ONCE, EventLog, NewEvent
from musterd.store.leases import Reaped, Settlement, Successes
from musterd.store.lifecycle import ENDED, AttemptOutcome, JobState
from musterd.store.report import error_line
from musterd.store.waiting import Bell, WriteLoop
from musterd.store.words import ERROR_LENGTH_MAX, cut, one_line, time_text
from musterd.workers.claiming.held import Ignored
from musterd.workers.outcome import Contained, line_of


class NodeEvents:
    """`history` has marks of what happens to the node; `watch` is the duty beside it."""

    def __init__(
        self,
        deps: TenancyDeps,
        is_on_duty: Callable[[], bool],
        history: HistoryWriter,
        watch: QueueWatch,
    ) -> None:
        engine = deps.engine
        self.history, self.watch = history, watch
        contained = FaultReporter(deps).contained
        self.feed = Feed(deps.tenant, engine.events, engine.queue.counts, contained)
        self.event_writer = EventWriter(engine.events, deps.log, deps.node, self.news)
        self.clock = ClockWatch(engine.health, deps.boottime)
        self.keeper = EventKeeper(engine.events, deps.settings, deps.rng, is_on_duty, self.clock)

    def news(self) -> None:
        """This node has changed something in the store. Cheap."""
        self.feed.news()
        self.keeper.news()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.event_writer.run)
            nursery.start_soon(self.keeper.run)
            nursery.start_soon(self.feed.run)
            nursery.start_soon(self.history.run)

    def node_is(self, state: str, **more: object) -> None:
        """started | draining | stopped"""
        self.event_writer.announce(f"node.{state}", version=__version__, **more)
        if state != "stopped":  # the history's last word is its own
            self.history.mark(f"node.{state}")

    def reloaded(self, result: str, generation: int, changed: Sequence[str]) -> None:
        data = {"result": result, "generation": generation, "changed": changed}
        self.event_writer.announce("config.reloaded", **data)
        self.history.mark("config.reloaded", f"{result}: generation {generation}")

    def crew_changed(self, how: str, worker: int) -> None:
        self.event_writer.announce(f"worker.{how}", worker=worker)

    def scaled(self, decision: Decision) -> None:
        """Only decisions that changed the crew are events."""
        if decision.hired or decision.taken_back or decision.retired:
            self.event_writer.announce("scale.decided", **decision_object(decision))

    async def finish(self, interrupted: Sequence[int], abandoned: Sequence[int]) -> None:
        """After the crew has left: records that, and which jobs did not end before, and lets
        readers catch up for a few seconds.
        """
        self.node_is(
            "stopped",
            interrupted=len(interrupted),
            abandoned=len(abandoned),
            interrupted_jobs=interrupted[:JOBS_NAMED_MAX],
            abandoned_jobs=abandoned[:JOBS_NAMED_MAX],
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.event_writer.finish)
            nursery.start_soon(self.history.finish)
        await self.feed.close()


JOBS_NAMED_MAX = 100
WAITING_MAX = 10_000  # a large crew is hired, and retires, at one blow
BATCH = 200
GATHER_SECONDS = 0.5
AWAY_SECONDS_MAX = 10.0
FINISH_SECONDS = 2.0


@attrs.define(eq=False)
class EventWriter:
    """Owned by a tenancy. Writes announced events in order, a moment later. While the store is
    away, it drops and counts the oldest ones beyond a limit.
    """

    events: EventLog
    log: Log
    node: str
    on_written: Callable[[], None]
    _waiting: deque[NewEvent] = attrs.field(factory=deque[NewEvent], init=False)
    _dropped: int = attrs.field(default=0, init=False)
    _turn: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _loop: WriteLoop = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._loop = WriteLoop(
            self._write, lambda: bool(self._waiting), GATHER_SECONDS, AWAY_SECONDS_MAX
        )

    def announce(self, what: str, **data: object) -> None:
        """Returns at once."""
        if len(self._waiting) >= WAITING_MAX:
            self._waiting.popleft()
            self._dropped += 1
        self._waiting.append(NewEvent(what, {"node": self.node, **data}))
        self._loop.bell.ring()

    async def run(self) -> None:
        await self._loop.run()

    async def finish(self) -> None:
        """Writes what waits, within a time limit; nothing may be announced afterwards."""
        await self._loop.finish(FINISH_SECONDS)
        self._dropped += len(self._waiting)
        self._waiting.clear()
        self._log_dropped()

    async def _write(self) -> bool:
        """Writes a batch; False = the store is away. If the reply is lost, it is written again."""
        async with self._turn:
            batch = list(self._waiting)[:BATCH]
            if not batch:
                return True
            try:
                await self.events.record(batch)
            except StoreError:
                return False  # the engine has logged it
            for one in batch:
                if self._waiting and self._waiting[0] is one:
                    self._waiting.popleft()
        self.on_written()
        self._log_dropped()
        return True

    def _log_dropped(self) -> None:
        if self._dropped:
            event(self.log, logging.WARNING, "node events dropped", count=self._dropped)
            self._dropped = 0


ORDER_SECONDS = 3.0  # after something has happened
ORDER_SECONDS_OTHERS = 30.0  # after something has happened here, while another has the duty
TRIM_SECONDS = 60.0
RESTED_TRIM_SECONDS = 3600.0  # where nothing has happened since
TRIMMED_ROWS = 1_000  # at once
HOUR_SECONDS = 3_600.0


@attrs.define(eq=False)
class EventKeeper:
    """Owned by a tenancy. Orders the events of its own node: soon if it holds the duty, else later,
    because the holder may not know of them. Asks nothing while its node does nothing. The duty is
    to forget old events; `trim` is one batch of that.
    """

    events: EventLog
    settings: LiveSettings
    rng: random.Random
    is_on_duty: Callable[[], bool] = lambda: True
    clock: ClockWatch | None = None
    _bell: Bell = attrs.field(factory=Bell, init=False)
    _has_grown: bool = attrs.field(default=True, init=False)  # since the last look for old ones
    _newest: int = attrs.field(default=0, init=False)

    def news(self) -> None:
        self._bell.ring()

    async def run(self) -> None:
        rest_seconds = 0.0
        if self.clock is not None:
            await self.clock.begin()
        while True:
            await self._bell.wait()
            pause_seconds = ORDER_SECONDS if self.is_on_duty() else ORDER_SECONDS_OTHERS
            await trio.sleep(max(pause_seconds, rest_seconds))
            self._bell.clear()
            self._has_grown = True
            began = trio.current_time()
            try:
                await self._order()
            except StoreError:  # the engine has logged it
                self._bell.ring()
            rest_seconds = rest_after(trio.current_time() - began)

    async def trim(self) -> int:
        """One batch; returns how many events were deleted."""
        keep_seconds = self._keep_seconds
        if self.clock is not None:
            keep_seconds += await self.clock.too_old_seconds(keep_seconds)
        trimmed = await self.events.trim(keep_seconds, TRIMMED_ROWS)
        if trimmed < TRIMMED_ROWS:
            self._has_grown = False
        return trimmed

    def trim_seconds(self) -> float:
        """The time until the next look: longer while no events are added."""
        if self._has_grown:
            return TRIM_SECONDS
        return max(TRIM_SECONDS, min(self._keep_seconds, RESTED_TRIM_SECONDS))

    async def wait(self, seconds: float) -> None:
        """This long, if no events are added meanwhile."""
        left_seconds = seconds
        while left_seconds > 0:
            await trio.sleep(min(TRIM_SECONDS, left_seconds))
            left_seconds = 0.0 if self._has_grown else left_seconds - TRIM_SECONDS

    @property
    def _keep_seconds(self) -> float:
        return self.settings.now.events.keep_hours * HOUR_SECONDS

    async def _order(self) -> None:
        grown = ORDERED_AT_ONCE
        while grown >= ORDERED_AT_ONCE:
            before, self._newest = self._newest, await self.events.order()
            grown = self._newest - before


FAULT_SECONDS = 60.0  # for so long the traceback of a fault stands for those like it
FAULTS_MAX = 100  # remembered; a bound, not a wish


@attrs.define
class _Fault:
    """What was written in full, and how many like it have come since."""

    written_local: float
    repeated: int = 0


@attrs.frozen
class FaultReporter:
    """Tells the log and the metrics of faults that were kept from going further. The log has the
    first of a sort in full. Those that follow soon are counted, and named if they cost a job.
    """

    deps: TenancyDeps
    _faults: dict[Hashable, _Fault] = attrs.field(factory=dict[Hashable, _Fault], init=False)

    def contained(self, what: Contained) -> None:
        self.deps.metrics.contained(what.where)
        fields: dict[str, object | None] = {
            "where": what.where, "kind": what.kind, "job_id": what.job_id, "attempt": what.attempt,
        }  # fmt: skip
        known = {key: value for key, value in fields.items() if value is not None}
        sort, now = _sort_of(what), trio.current_time()
        fault = self._faults.pop(sort, None)
        if fault is not None and now - fault.written_local < FAULT_SECONDS:
            fault.repeated += 1
            self._faults[sort] = fault
            if what.job_id is not None:
                known["error"] = line_of(what.error)
                self.deps.log.error("fault contained", extra=extra(**known))
            return
        if fault is not None and fault.repeated:
            known["repeated"] = fault.repeated
        if len(self._faults) >= FAULTS_MAX:
            del self._faults[next(iter(self._faults))]
        self._faults[sort] = _Fault(now)
        self.deps.log.error("fault contained", exc_info=what.error, extra=extra(**known))


def _sort_of(what: Contained) -> Hashable:
    """Faults of one sort have the same traceback, as far as anyone can tell."""
    trace = what.error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = None if trace is None else (trace.tb_frame.f_code, trace.tb_lineno)
    return what.where, what.kind, type(what.error), place


class JobReporter:
    """Calls `news` after each write, and `on_ended` with the kinds of jobs that have ended."""

    def __init__(
        self,
        deps: TenancyDeps,
        node_events: NodeEvents,
        on_ended: Callable[[Collection[str]], None],
    ) -> None:
        self.settled_total = 0
        self._history = node_events.history
        self.service_times = ServiceTimes()
        self._tenant, self._log, self._metrics = deps.tenant, deps.log, deps.metrics
        self._engine = deps.engine
        self._settings, self._catalog = deps.settings, deps.catalog
        self.arrivals = Arrivals()
        self._news, self._on_ended = node_events.news, on_ended

    def claimed(self, kind: str, waited_seconds: Sequence[float]) -> None:
        promised = self._catalog().promises.get(kind, self._settings.now.scaling.max_wait_seconds)
        self._metrics.claimed(kind, waited_seconds)
        self._history.claimed(kind, waited_seconds)
        self._metrics.promised(kind, waited_seconds, promised)
        self.arrivals.note(kind, waited_seconds, trio.current_time())

    def settled(self, settlements: Sequence[Settlement]) -> None:
        self.settled_total += len(settlements)
        self._news()
        self._metrics.settled(settlements, self._tenant)
        self._history.settled(settlements)
        self.service_times.note(settlements)
        self._on_ended({one.kind for one in settlements if one.state in ENDED})
        failed, logs_all = JobState.FAILED, self._log.isEnabledFor(logging.DEBUG)
        for settlement in settlements:
            if settlement.state is failed:
                self._log_attempt(logging.WARNING, "job failed", settlement)
            elif settlement.outcome is AttemptOutcome.RETRYING:
                event(self._log, logging.INFO, "attempt failed", **retry_fields(settlement))
            elif logs_all:
                self._log_attempt(logging.DEBUG, "attempt settled", settlement)

    def succeeded(self, successes: Successes) -> None:
        self.settled_total += len(successes.ids)
        self._news()
        self._metrics.succeeded(successes, self._tenant)
        self._history.succeeded(successes)
        self.service_times.note_successes(successes)
        self._on_ended(set(successes.kinds))
        if self._log.isEnabledFor(logging.DEBUG):
            for settlement in successes.settlements():
                self._log_attempt(logging.DEBUG, "attempt settled", settlement)

    def stale_writes(self, count: int) -> None:
        if count:
            self._metrics.stale_writes(count)
            phrase = "settlements refused: leases were lost"
            event(self._log, logging.WARNING, phrase, count=count)

    def lease_lost(self, job_id: int, kind: str, attempt: int) -> None:
        fields = {"job_id": job_id, "kind": kind, "attempt": attempt}
        event(self._log, logging.WARNING, "lease lost; job stopped here", **fields)

    def held_up(self, job_id: int, kind: str, attempt: int) -> None:
        fields = {"job_id": job_id, "kind": kind, "attempt": attempt}
        phrase = "end not yet written: another transaction holds the job or its target"
        event(self._log, logging.WARNING, phrase, **fields)

    def request_ignored(self, ignored: Ignored) -> None:
        fields = {"job_id": ignored.job_id, "kind": ignored.kind, "attempt": ignored.attempt}
        fields["request"] = ignored.request
        seconds = round(ignored.seconds, 1)
        event(self._log, logging.WARNING, "request ignored", **fields, seconds=seconds)

    def claim_refused(self, why: str) -> None:
        self._engine.cannot_give_out(why)

    def reaped(self, reaped: Sequence[Reaped]) -> None:
        self._metrics.reaped(reaped, self._tenant)
        self._history.reaped(reaped)
        self._news()
        for one in reaped:
            fields: dict[str, object] = {"job_id": one.id, "kind": one.kind, "attempt": one.attempt}
            fields |= {"node": one.node, "state": str(one.state)}
            fields |= {} if one.damage is None else {"damage": one.damage}
            event(self._log, logging.WARNING, "lease expired", **fields)

    def _log_attempt(self, level: int, phrase: str, settlement: Settlement) -> None:
        event(
            self._log, level, phrase, job_id=settlement.id, kind=settlement.kind,
            attempt=settlement.attempt, worker=settlement.worker, outcome=str(settlement.outcome),
            error=error_line(settlement.error), run_seconds=round(settlement.run_seconds, 6),
        )  # fmt: skip


def retry_fields(settlement: Settlement) -> dict[str, object]:
    """What is logged of an attempt that failed and will be retried: of its error the first line."""
    fields: dict[str, object] = {
        "job_id": settlement.id, "kind": settlement.kind, "attempt": settlement.attempt,
        "worker": settlement.worker,
    }  # fmt: skip
    error = json.loads(settlement.error or "{}")
    first = next(iter(str(error.get("message", "")).splitlines()), "")
    fields["error"] = cut(one_line(f"{error.get('type', 'error')}: {first}"), ERROR_LENGTH_MAX)
    fields["run_seconds"] = round(settlement.run_seconds, 6)
    again_epoch = settlement.ended_epoch + (settlement.delay_seconds or 0.0)
    return fields | {"next_at": time_text(datetime.fromtimestamp(again_epoch, UTC))}


@attrs.define(eq=False)
class DutyReporter:
    """The `DutyObserver` of a tenant. Calls `lost` for each duty that this node no longer does."""

    metrics: DutyMetrics
    event_writer: EventWriter
    deps: TenancyDeps
    lost: Callable[[str], None]

    def acquired(self, duties: Sequence[str]) -> None:
        self._log_duties("duties taken", duties)
        for duty in duties:
            self.metrics.holds(self.deps.tenant, duty, held=True)
            self.event_writer.announce("duty.acquired", duty=duty)

    def released(self, duties: Sequence[str], why: str) -> None:
        self._log_duties("duties released", duties, reason=why)
        for duty in duties:
            self.metrics.holds(self.deps.tenant, duty, held=False)
            self.lost(duty)
            self.event_writer.announce("duty.released", duty=duty, reason=why)

    def ran(self, duty: str, run: DutyRun) -> None:
        result = RunResult.OK if run.error is None else RunResult.ERROR
        if run.is_given_up:
            result = RunResult.GIVEN_UP
        self.metrics.ran(self.deps.tenant, duty, result, run.seconds, self.deps.wall_clock())

    def _log_duties(self, phrase: str, duties: Sequence[str], **fields: str) -> None:
        event(self.deps.log, logging.INFO, phrase, duties=",".join(duties), **fields)
