"""What a duty is, the names of all duties, and the loop of the node that holds one."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

import attrs
import trio

from musterd.manager.log import Log, extra
from musterd.store.errors import StoreError, StoreUnavailable
from musterd.store.waiting import Backoff

EVENTS = "events"
METRICS = "metrics"
REAPING = "reaping"
RETENTION = "retention"
SCHEDULES = "schedules"
STATISTICS = "statistics"
WEBHOOKS = "webhooks"

DUTIES = (EVENTS, METRICS, REAPING, RETENTION, SCHEDULES, STATISTICS, WEBHOOKS)


NEXT_BATCH_SECONDS = 0.02  # where there is more to do: others get their turn
RESTS = 10.0  # times as long as a run took: one that has become dear is done less often,
REST_SECONDS_MAX = 5.0  # but not much less
BACKOFF_SECONDS = 2.0
BACKOFF_SECONDS_MAX = 60.0
MESSAGE_LENGTH_MAX = 500


@attrs.frozen(eq=False)
class Duty:
    """`run` does one batch and returns how much was done. It is cancelled when the duty is lost, so
    its writes must be safe to repeat. A full batch means that there may be more.
    """

    name: str
    run: Callable[[], Awaitable[int]]
    interval_seconds: Callable[[], float]
    batch: int | None = None  # None = one run does all that there is
    wait: Callable[[float], Awaitable[None]] = trio.sleep  # until the next run; may end early


class DutyObserver(Protocol):
    """Hears what becomes of duties. Returns at once and never raises."""

    def acquired(self, duties: Sequence[str]) -> None: ...

    def released(self, duties: Sequence[str], why: str) -> None: ...

    def ran(self, duty: str, items: int, error: str | None) -> None: ...


@attrs.define(eq=False)
class Tally:
    """Work that has not been reported to the store yet."""

    runs: int = 0
    items: int = 0
    errors: int = 0
    last_error: str | None = None

    def note(self, items: int, error: str | None) -> None:
        self.runs += 1
        self.items += items
        if error is not None:
            self.errors += 1
            self.last_error = error[:MESSAGE_LENGTH_MAX]

    def forget(self, reported: Tally) -> None:
        """These figures have been reported."""
        self.runs -= reported.runs
        self.items -= reported.items
        self.errors -= reported.errors


async def serve(
    duty: Duty,
    tally: Tally,
    observer: DutyObserver,
    rng: random.Random,
    log: Log,
    is_held: Callable[[], bool] = lambda: True,
) -> None:
    """Runs a duty until it is cancelled or lost. After an error it tries again, later each time."""
    backoff = Backoff(BACKOFF_SECONDS, BACKOFF_SECONDS_MAX, rng)
    while is_held():
        began = trio.current_time()
        run = await _run_once(duty, log)
        rest_seconds = rest_after(trio.current_time() - began)
        tally.note(run.items, run.error)
        observer.ran(duty.name, run.items, run.error)
        if run.error is not None:
            seconds_max = max(1.0, duty.interval_seconds()) if run.away else BACKOFF_SECONDS_MAX
            await trio.sleep(backoff.failed(seconds_max))
            continue
        backoff.succeeded()
        if duty.batch is not None and run.items >= duty.batch:
            await trio.sleep(NEXT_BATCH_SECONDS)
        else:
            await duty.wait(max(rest_seconds, duty.interval_seconds() * rng.uniform(0.8, 1.0)))


def rest_after(run_seconds: float) -> float:
    """The shortest pause before the next run."""
    return min(RESTS * run_seconds, REST_SECONDS_MAX)


class _Run(NamedTuple):
    """The result of one run. `away`: the duty is fine, but the store cannot be reached."""

    items: int
    error: str | None = None
    away: bool = False


async def _run_once(duty: Duty, log: Log) -> _Run:
    try:
        return _Run(await duty.run())
    except StoreError as error:  # the engine has logged it
        return _Run(0, str(error), isinstance(error, StoreUnavailable))
    except Exception as error:
        # One duty must not bring down the others, nor the crew beside it.
        named = extra(duty=duty.name, error=type(error).__name__)
        log.exception("duty failed", extra=named)
        return _Run(0, f"{type(error).__name__}: {error}")
