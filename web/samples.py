"""How the queues of a node stood in the last minutes: what the sparklines are drawn from.

Memory of this node and nothing else: it begins when the node does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import attrs
import trio

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.node.status import Decision, NodeStatus, TenantStatus
from musterd.store.job import Counts
from musterd.web.pages.trend import SAMPLE_SECONDS, Sample, Trend, sample_of, trend_of
from musterd.web.plan import HttpPlan, TenantDoor

SAMPLES_MAX = 120  # ten minutes
TENANTS_MAX = 200  # have samples; of the others only what is now is shown
REST_SECONDS = 60.0  # a tenant that has nothing to do is asked no more often than this
ANSWER_SECONDS = 1.0
OPEN_PHASES = ("running", "draining")  # in which the store is open


class Samples:
    """`run` takes a sample of each tenant every few seconds, for ever."""

    def __init__(self, plan: HttpPlan) -> None:
        self._plan = plan
        self._rings: dict[str, deque[Sample]] = {}
        self._asked: dict[str, tuple[float, object]] = {}

    def trend(self, tenant: str) -> Trend:
        return trend_of(tuple(self._rings.get(tenant, ())))

    async def run(self) -> None:
        while True:
            await self.take()
            await trio.sleep(SAMPLE_SECONDS)

    async def take(self) -> None:
        """One sample of each tenant; of those that are no longer there all are forgotten."""
        crews = tenants_of(self._plan.node.status())[:TENANTS_MAX]
        names = {crew.name for crew in crews}
        for gone in self._rings.keys() - names:
            self._rings.pop(gone)
            self._asked.pop(gone, None)
        for crew in crews:
            door = self._plan.tenant(crew.name)
            if door is not None:
                await self._take_one(door, crew)
        await trio.lowlevel.checkpoint()

    async def _take_one(self, door: TenantDoor, crew: TenantStatus) -> None:
        decisions = door.decisions()
        ring = self._rings.setdefault(crew.name, deque(maxlen=SAMPLES_MAX))
        now_local = trio.current_time()
        last = decisions[-1] if decisions else None
        if ring and self._rests(crew, None if door.at_rest() else last, now_local):
            # Nothing has happened that this node knows of: its store is left alone.
            same = sample_of(now_local, crew, last, None)
            ring.append(attrs.evolve(ring[-1], at_local=same.at_local, desired=same.desired))
            return
        counts = None
        if crew.phase in OPEN_PHASES and crew.store_trouble is None:
            counts = await self._ask(door)
        ring.append(sample_of(now_local, crew, last, counts))

    async def _ask(self, door: TenantDoor) -> Counts | None:
        with trio.move_on_after(ANSWER_SECONDS):
            try:
                return await door.snapshot()
            except Exception:
                # A picture of the past is not worth the web side's life.
                self._plan.log.exception("no sample could be taken")
        return None

    def _rests(self, crew: TenantStatus, last: Decision | None, now_local: float) -> bool:
        signs = (
            crew.idle,
            crew.settled_total,
            crew.store_trouble,
            None if last is None else last.at,
        )
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


def tenants_of(status: NodeStatus) -> Sequence[TenantStatus]:
    """The tenants of a node; a node that names none has the one that always exists."""
    if status.tenants:
        return status.tenants
    return (
        TenantStatus(
            name=DEFAULT_TENANT, phase=status.phase, engine=status.engine, store=status.store,
            store_trouble=status.store_trouble,
            store_trouble_seconds=status.store_trouble_seconds, store_message=status.store_message,
            idle=status.idle, busy=status.busy, retiring=status.retiring,
            default_count=status.default_count, max_count=status.max_count, depth=status.depth,
            settled_total=status.settled_total, retention_trouble=None,
        ),
    )  # fmt: skip
