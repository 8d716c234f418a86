"""The queues of a node over the last minutes, in memory, for the page's sparklines."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import attrs
import trio

from musterd.manager.node.status import Decision, TenantStatus
from musterd.store.lifecycle import ENDED
from musterd.store.queue import Counts
from musterd.web.deps import HttpDeps, TenantAccess

SAMPLES_MAX = 120  # ten minutes
TENANTS_MAX = 200  # have samples; of the others only what is now is shown
REST_SECONDS = 60.0  # a tenant that has nothing to do is asked no more often than this
ANSWER_SECONDS = 1.0
OPEN_PHASES = ("running", "draining")  # in which the store is open


class Samples:
    """`run` samples each tenant every few seconds, forever."""

    def __init__(self, deps: HttpDeps) -> None:
        self._deps = deps
        self._rings: dict[str, deque[Sample]] = {}
        self._trends: dict[str, Trend] = {}  # of the rings as they are, where somebody has asked
        self._asked: dict[str, tuple[float, object]] = {}

    def trend(self, tenant: str) -> Trend:
        """The same object until the next sample."""
        if tenant not in self._rings:
            return Trend()
        if tenant not in self._trends:
            self._trends[tenant] = trend_of(tuple(self._rings[tenant]))
        return self._trends[tenant]

    async def run(self) -> None:
        while True:
            await self.take()
            await trio.sleep(SAMPLE_SECONDS)

    async def take(self) -> None:
        """One sample of each tenant; those of former tenants are dropped."""
        crews = self._deps.node.status().tenants[:TENANTS_MAX]
        names = {crew.name for crew in crews}
        for gone in self._rings.keys() - names:
            self._rings.pop(gone)
            self._trends.pop(gone, None)
            self._asked.pop(gone, None)
        for crew in crews:
            tenant = self._deps.tenant(crew.name)
            if tenant is not None:
                await self._take_one(tenant, crew)
        await trio.lowlevel.checkpoint()

    async def _take_one(self, tenant: TenantAccess, crew: TenantStatus) -> None:
        decisions = tenant.decisions()
        ring = self._rings.setdefault(crew.name, deque(maxlen=SAMPLES_MAX))
        now_local = trio.current_time()
        last = decisions[-1] if decisions else None
        if ring and self._rests(crew, None if tenant.at_rest() else last, now_local):
            # Nothing has happened that this node knows of: its store is left alone.
            same = sample_of(now_local, crew, last, None)
            known = attrs.evolve(ring[-1], at_local=same.at_local, desired=same.desired)
            self._add(crew.name, known)
            return
        counts = None
        if crew.phase in OPEN_PHASES and crew.store_trouble is None:
            counts = await self._ask(tenant)
        self._add(crew.name, sample_of(now_local, crew, last, counts))

    def _add(self, tenant: str, sample: Sample) -> None:
        self._rings[tenant].append(sample)
        self._trends.pop(tenant, None)

    async def _ask(self, tenant: TenantAccess) -> Counts | None:
        with trio.move_on_after(ANSWER_SECONDS):
            try:
                return await tenant.snapshot()
            except Exception:
                # A picture of the past is not worth the web side's life.
                self._deps.log.exception("cannot sample the queue")
        return None

    def _rests(self, crew: TenantStatus, last: Decision | None, now_local: float) -> bool:
        decided_at = None if last is None else last.at
        signs = (crew.idle, crew.settled_total, crew.store_trouble, decided_at)
        asked_local, before = self._asked.get(crew.name, (float("-inf"), None))
        rests = (
            not crew.busy
            and not crew.depth
            and signs == before
            and now_local - asked_local < REST_SECONDS
        )
        if not rests:
            self._asked[crew.name] = now_local, signs
        return rests


SAMPLE_SECONDS = 5.0
RATE_SAMPLES = 6  # the samples that a rate covers


@attrs.frozen
class Sample:
    """None = unknown."""

    at_local: float
    size: int
    busy: int
    desired: int | None
    depth: int | None = None
    oldest_seconds: float | None = None
    enqueued_total: int | None = None
    open_jobs: int | None = None  # those that have not ended


@attrs.frozen(eq=False)
class Trend:
    """One tenant's samples as series, newest last; rates are per second."""

    depth: Sequence[float | None] = ()
    oldest: Sequence[float | None] = ()
    arriving: Sequence[float | None] = ()
    leaving: Sequence[float | None] = ()
    busy: Sequence[float | None] = ()
    desired: Sequence[float | None] = ()

    @property
    def rates(self) -> tuple[float | None, float | None]:
        """Jobs that arrive and finish per second now."""
        return (
            self.arriving[-1] if self.arriving else None,
            self.leaving[-1] if self.leaving else None,
        )


def sample_of(
    now_local: float, crew: TenantStatus, last: Decision | None, counts: Counts | None
) -> Sample:
    desired = None if last is None else last.desired
    seen = Sample(now_local, crew.size, crew.busy, desired)
    if counts is None:
        return seen
    not_ended = sum(count for state, count in counts.by_state.items() if state not in ENDED)
    return attrs.evolve(
        seen, depth=counts.due, oldest_seconds=counts.oldest_due_seconds,
        enqueued_total=counts.enqueued_total, open_jobs=not_ended,
    )  # fmt: skip


def trend_of(samples: Sequence[Sample]) -> Trend:
    """Jobs that were enqueued and are no longer open have finished: deletion does not count."""
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
    """The start of a rate's window: a few samples ago, later if nothing was known then."""
    window = samples[max(0, place - RATE_SAMPLES) : place + 1]
    return next((one for one in window if one.enqueued_total is not None), samples[place])


def _rates(before: Sample, now: Sample) -> tuple[float | None, float | None]:
    span_seconds = now.at_local - before.at_local
    if span_seconds <= 0 or before.enqueued_total is None or now.enqueued_total is None:
        return None, None
    come = now.enqueued_total - before.enqueued_total
    gone = come - ((now.open_jobs or 0) - (before.open_jobs or 0))
    return max(0, come) / span_seconds, max(0, gone) / span_seconds
