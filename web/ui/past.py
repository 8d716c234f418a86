"""The past of queues for the page's readers: each is read once for all of them, and not often."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

import trio
from attrs import define, field

from musterd.store.engine import Engine
from musterd.store.errors import StoreError
from musterd.store.history import EndedJobs, add_ended, quantile
from musterd.web.deps import TenantAccess
from musterd.web.pages.pictures import RANGES, RECENT_SECONDS, KindRow
from musterd.web.picture import HIGH, Picture, Span, picture_of

FRESH_SECONDS = 5.0
FRESH_SHARE = 0.1  # of a step: a long one changes slowly
ANSWER_SECONDS = 0.8
KEPT_MAX = 400  # tenants and ranges
RECENT_STEP_SECONDS = 60

T = TypeVar("T")


@define(eq=False)
class _Cache(Generic[T]):
    """The latest answers; those not asked for the longest go first."""

    _found: OrderedDict[tuple[str, str], tuple[float, T]] = field(
        factory=OrderedDict[tuple[str, str], tuple[float, T]], init=False
    )
    _turn: trio.Lock = field(factory=trio.Lock, init=False)

    async def get(
        self, key: tuple[str, str], fresh_seconds: float, ask: Callable[[], Awaitable[T]]
    ) -> T | None:
        """None = the store does not answer."""
        async with self._turn:
            known = self._found.get(key)
            if known is not None and trio.current_time() - known[0] < fresh_seconds:
                self._found.move_to_end(key)
                return known[1]
            with trio.move_on_after(ANSWER_SECONDS):
                try:
                    answer = await ask()
                except StoreError:  # the engine has logged it
                    return None
                self._found[key] = trio.current_time(), answer
                self._found.move_to_end(key)
                if len(self._found) > KEPT_MAX:
                    self._found.popitem(last=False)
                return answer
        return None


@define(eq=False)
class PastReader:
    _pictures: _Cache[Picture] = field(factory=_Cache[Picture], init=False)
    _kinds: _Cache[list[KindRow]] = field(factory=_Cache[list[KindRow]], init=False)

    async def picture(self, tenant: TenantAccess, chosen: str) -> Picture | None:
        """`chosen` is one of `RANGES`."""
        reach_seconds, step = RANGES[chosen]

        async def ask() -> Picture:
            now = await tenant.engine.health.now()
            return await read_picture(tenant.engine, Span(now - reach_seconds, now, step))

        fresh_seconds = max(FRESH_SECONDS, FRESH_SHARE * step)
        return await self._pictures.get((tenant.name, chosen), fresh_seconds, ask)

    async def kinds(self, tenant: TenantAccess, promised: float) -> list[KindRow] | None:
        """Kinds with jobs now or lately. `promised`: to the jobs of kinds that promise nothing."""

        async def ask() -> list[KindRow]:
            return await read_kinds(tenant, promised)

        return await self._kinds.get((tenant.name, ""), FRESH_SECONDS, ask)


async def read_picture(engine: Engine, span: Span) -> Picture:
    past = await engine.history.read(span.kept_step, span.begins[0], span.until + 1, by_kind=False)
    return picture_of(past, span)


async def read_kinds(tenant: TenantAccess, promised: float) -> list[KindRow]:
    now = await tenant.engine.health.now()
    past = await tenant.engine.history.read(RECENT_STEP_SECONDS, now - RECENT_SECONDS, now + 1)
    ended: dict[str, EndedJobs] = {}
    for row in past.kinds:
        kind = row.ended.kind
        ended[kind] = add_ended(ended[kind], row.ended) if kind in ended else row.ended
    seen = await tenant.engine.queue.observe(1, horizon_seconds=0.0)
    waiting: dict[str, tuple[int, float]] = {}
    for one in seen.line.waiting if seen.line is not None else ():
        number, oldest_seconds = waiting.get(one.kind, (0, 0.0))
        if one.waited_seconds >= 0:
            waiting[one.kind] = number + one.number, max(oldest_seconds, one.waited_seconds)
    promises = tenant.catalog().promises
    names = sorted(kind for kind in {*ended, *waiting} if kind)
    return [_row(kind, ended.get(kind), waiting, promises.get(kind, promised)) for kind in names]


def _row(
    kind: str,
    ended: EndedJobs | None,
    waiting: Mapping[str, tuple[int, float]],
    promise_seconds: float,
) -> KindRow:
    number, oldest_seconds = waiting.get(kind, (0, None))
    if ended is None:
        ended = EndedJobs(kind)
    return KindRow(
        kind, number, oldest_seconds, ended.succeeded + ended.failed + ended.canceled, ended.failed,
        ended.retried, quantile(ended.runs, HIGH), quantile(ended.waits, HIGH), promise_seconds,
    )  # fmt: skip
