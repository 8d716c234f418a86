"""What a duty is, the names of all duties, and the loop of the node that holds one."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import NamedTuple, Protocol
from uuid import UUID

import attrs
import trio

from musterd.manager.log import Log, event, extra
from musterd.store.duties import DutyReport
from musterd.store.errors import StoreError, StoreUnavailable
from musterd.store.waiting import Backoff

EVENTS = "events"
METRICS = "metrics"
REAPING = "reaping"
RETENTION = "retention"
SCHEDULES = "schedules"
STATISTICS = "statistics"
WEBHOOKS = "webhooks"
FILE = "file"  # only embedded stores have it

DUTIES = (EVENTS, METRICS, REAPING, RETENTION, SCHEDULES, STATISTICS, WEBHOOKS)


NEXT_BATCH_SECONDS = 0.02  # where there is more to do: others get their turn
RESTS = 10.0  # times as long as a run took: one that has become dear is done less often,
REST_SECONDS_MAX = 5.0  # but not much less
BACKOFF_SECONDS = 2.0
BACKOFF_SECONDS_MAX = 60.0
MESSAGE_LENGTH_MAX = 500
REST_AFTER_SECONDS = 30.0  # a job now and then is no rest
RUN_LIMIT_SECONDS = 300.0  # unless the settings say otherwise


class DutyRun(NamedTuple):
    """The result of one run. `is_away`: the duty is fine, but the store cannot be reached.
    `is_given_up`: it took longer than it may.
    """

    seconds: float
    items: int = 0
    error: str | None = None
    is_away: bool = False
    is_given_up: bool = False


@attrs.frozen(eq=False)
class Duty:
    """`run` does one batch and returns how much was done. It is cancelled when the duty is lost, so
    its writes must be safe to repeat. A full batch means that there may be more.
    """

    name: str
    run: Callable[[], Awaitable[int]]
    interval_seconds: Callable[[], float]
    batch: Callable[[], float] = lambda: inf  # infinite = one run does all that there is
    wait: Callable[[float], Awaitable[None]] = trio.sleep  # until the next run; may end early
    run_limit_seconds: Callable[[], float] = lambda: RUN_LIMIT_SECONDS


class DutyObserver(Protocol):
    """Hears what becomes of duties. Returns at once and never raises."""

    def acquired(self, duties: Sequence[str]) -> None: ...

    def released(self, duties: Sequence[str], why: str) -> None: ...

    def ran(self, duty: str, run: DutyRun) -> None: ...


@attrs.define(eq=False)
class Tally:
    """Work that has not been reported to the store yet, and since when a run is under way."""

    runs: int = 0
    run_seconds: float = 0.0
    items: int = 0
    errors: int = 0
    last_error: str | None = None
    began_local: float | None = None

    def note(self, run: DutyRun) -> None:
        self.began_local = None
        self.runs += 1
        self.run_seconds += run.seconds
        self.items += run.items
        if run.error is not None:
            self.errors += 1
            self.last_error = run.error[:MESSAGE_LENGTH_MAX]

    def forget(self, reported: DutyReport) -> None:
        """These figures have been reported."""
        self.runs -= reported.runs
        self.run_seconds -= reported.run_seconds
        self.items -= reported.items
        self.errors -= reported.errors

    def report(self, duty: str, term: UUID) -> DutyReport:
        began_local = self.began_local
        running = None if began_local is None else trio.current_time() - began_local
        figures = (self.runs, self.items, self.errors, self.last_error, self.run_seconds)
        return DutyReport(duty, term, *figures, running)


async def serve(
    duty: Duty,
    tally: Tally,
    observer: DutyObserver,
    rng: random.Random,
    log: Log,
    is_held: Callable[[], bool] = lambda: True,
) -> DutyRun | None:
    """Runs a duty until cancelled, or until it is no longer held. After an error it tries again,
    later each time. A run that takes longer than its limit is the last one, and is returned: what
    holds it up here may not hold up another node.
    """
    backoff = Backoff(BACKOFF_SECONDS, BACKOFF_SECONDS_MAX, rng)
    while is_held():
        tally.began_local = trio.current_time()
        run = await _run_once(duty, log)
        rest_seconds = rest_after(run.seconds)
        tally.note(run)
        observer.ran(duty.name, run)
        if run.is_given_up:
            return run
        if run.error is not None:
            seconds_max = max(1.0, duty.interval_seconds()) if run.is_away else BACKOFF_SECONDS_MAX
            await trio.sleep(backoff.failed(seconds_max))
            continue
        backoff.succeeded()
        if run.items >= duty.batch():
            await trio.sleep(NEXT_BATCH_SECONDS)
        else:
            await duty.wait(max(rest_seconds, duty.interval_seconds() * rng.uniform(0.8, 1.0)))
    return None


def rest_after(run_seconds: float) -> float:
    """The shortest pause before the next run."""
    return min(RESTS * run_seconds, REST_SECONDS_MAX)


async def _run_once(duty: Duty, log: Log) -> DutyRun:
    began_local, limit_seconds = trio.current_time(), duty.run_limit_seconds()

    def ran(items: int, error: str | None = None, **how: bool) -> DutyRun:
        return DutyRun(trio.current_time() - began_local, items, error, **how)

    try:
        with trio.move_on_after(limit_seconds):
            return ran(await duty.run())
    except StoreError as error:  # the engine has logged it
        return ran(0, str(error), is_away=isinstance(error, StoreUnavailable))
    except Exception as error:
        # One duty must not bring down the others, nor the crew beside it.
        named = extra(duty=duty.name, error=type(error).__name__)
        log.exception("duty failed", extra=named)
        return ran(0, f"{type(error).__name__}: {error}")
    event(log, logging.ERROR, "duty given up", duty=duty.name, run_limit_seconds=limit_seconds)
    what = f"a run took longer than {limit_seconds:g} s ([duties] run_limit_seconds)"
    return ran(0, what, is_given_up=True)
