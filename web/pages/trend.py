"""How a queue stood in the last minutes, as series. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from musterd.manager.node.status import Decision, TenantStatus
from musterd.store.job import Counts
from musterd.store.lifecycle import ENDED

SAMPLE_SECONDS = 5.0
RATE_SAMPLES = 6  # a rate is over so many steps


@attrs.frozen
class Sample:
    """One moment. What is None is not known."""

    at_local: float
    size: int
    busy: int
    desired: int | None
    depth: int | None = None
    oldest_seconds: float | None = None
    enqueued_total: int | None = None
    open_jobs: int | None = None  # those that have not ended


@attrs.frozen
class Trend:
    """The samples of one tenant as series, the newest last; rates are per second."""

    depth: Sequence[float | None] = ()
    oldest: Sequence[float | None] = ()
    arriving: Sequence[float | None] = ()
    leaving: Sequence[float | None] = ()
    busy: Sequence[float | None] = ()
    desired: Sequence[float | None] = ()

    @property
    def rates(self) -> tuple[float | None, float | None]:
        """How many jobs come and end in a second, now."""
        return (
            self.arriving[-1] if self.arriving else None,
            self.leaving[-1] if self.leaving else None,
        )


def sample_of(
    now_local: float, crew: TenantStatus, last: Decision | None, counts: Counts | None
) -> Sample:
    seen = Sample(
        now_local, crew.idle + crew.busy + crew.retiring, crew.busy,
        None if last is None else last.desired,
    )  # fmt: skip
    if counts is None:
        return seen
    not_ended = sum(count for state, count in counts.by_state.items() if state not in ENDED)
    return attrs.evolve(
        seen, depth=counts.due, oldest_seconds=counts.oldest_due_seconds,
        enqueued_total=counts.enqueued_total, open_jobs=not_ended,
    )  # fmt: skip


def trend_of(samples: Sequence[Sample]) -> Trend:
    """What ends is what has come and is no longer there: deleting old jobs does not count."""
    rates = [_rates(_before(samples, place), one) for place, one in enumerate(samples)]
    return Trend(
        [one.depth for one in samples],
        [one.oldest_seconds for one in samples],
        [come for come, _ in rates],
        [gone for _, gone in rates],
        [one.busy for one in samples],
        [one.desired for one in samples],
    )


def _before(samples: Sequence[Sample], place: int) -> Sample:
    """What a rate is counted from: a few samples ago, later if nothing was known then."""
    window = samples[max(0, place - RATE_SAMPLES) : place + 1]
    return next((one for one in window if one.enqueued_total is not None), samples[place])


def _rates(before: Sample, now: Sample) -> tuple[float | None, float | None]:
    span_seconds = now.at_local - before.at_local
    if span_seconds <= 0 or before.enqueued_total is None or now.enqueued_total is None:
        return None, None
    come = now.enqueued_total - before.enqueued_total
    gone = come - ((now.open_jobs or 0) - (before.open_jobs or 0))
    return max(0, come) / span_seconds, max(0, gone) / span_seconds
