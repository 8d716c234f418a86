"""What the views show, asked of node and store, each within a bound: a page never hangs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from musterd.catalog.lookup import budget_of
from musterd.manager.node.status import TenantStatus
from musterd.store.errors import StoreError
from musterd.store.job import JobRecord
from musterd.store.standing import Standing
from musterd.store.why import why
from musterd.web.api.operation import Site
from musterd.web.pages import job, nodes, overview, scaling
from musterd.web.plan import TenantDoor
from musterd.web.samples import tenants_of

T = TypeVar("T")
ANSWER_SECONDS = 0.8  # then a page says that the store does not answer


class Away(Exception):
    """The store does not say."""


async def in_time(ask: Callable[[], Awaitable[T]], seconds: float = ANSWER_SECONDS) -> T:
    """Raises `Away`."""
    with trio.move_on_after(seconds):
        try:
            return await ask()
        except StoreError as error:
            raise Away(str(error)) from error
    raise Away(f"no answer within {seconds:g} s")


async def in_time_or_none(ask: Callable[[], Awaitable[T]]) -> T | None:
    try:
        return await in_time(ask)
    except Away:
        return None


def crew_of(site: Site, door: TenantDoor) -> TenantStatus:
    crews = tenants_of(site.plan.node.status())
    return next((one for one in crews if one.name == door.name), crews[0])


async def see_overview(site: Site, door: TenantDoor) -> overview.Overview:
    counts = await in_time_or_none(door.engine.counts)
    status = site.plan.node.status()
    return overview.Overview(
        status, crew_of(site, door), counts, door.workers(), door.decisions(),
        site.samples.trend(door.name), tenants_of(status),
    )  # fmt: skip


async def see_nodes(_site: Site, door: TenantDoor) -> nodes.Seen:
    found, duties = None, None
    with trio.move_on_after(ANSWER_SECONDS):
        found = await in_time_or_none(door.engine.nodes)
        duties = await in_time_or_none(door.engine.duties.duties)
    return nodes.Seen(found, duties, door.workers())


async def see_scaling(site: Site, door: TenantDoor) -> scaling.Seen:
    await trio.lowlevel.checkpoint()
    return scaling.Seen(crew_of(site, door), door.decisions())


async def see_job(door: TenantDoor, job_id: int) -> job.Seen | None:
    """None: there is no such job. Raises `Away`."""

    async def ask() -> tuple[JobRecord | None, Standing | None]:
        record = await door.engine.job(job_id)
        return record, None if record is None else await door.engine.standing(job_id)

    record, standing = await in_time(ask)
    if record is None:
        return None
    budget = budget_of(door.catalog(), record.kind)
    if standing is None:
        return job.Seen(record, budget=budget)
    return job.Seen(record, why(standing), standing.now, budget)
