"""What the web side of a node is made of."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from musterd.config.schedules import of_tenant
from musterd.manager.census import Census
from musterd.manager.http.plan import ENVELOPE_BYTES, HttpPlan, ReloadDoor, TargetSeen, TenantDoor
from musterd.store.payload import PayloadLimits

if TYPE_CHECKING:
    from musterd.config.settings import Settings
    from musterd.manager.cli.node import Node
    from musterd.manager.daemon import Daemon
    from musterd.store.engine import Engine


def web_plan(settings: Settings, node: Node, log: logging.Logger) -> HttpPlan:
    census = Census(node.daemon.tenancies, node.metrics)
    return HttpPlan(
        listen=settings.http.listen,
        keys=node.keys,
        node=node.daemon,
        tenant=partial(_door, node.daemon, census),
        drain=node.daemon.drain,
        reload=ReloadDoor(node.daemon.reload, node.daemon.reload_soon, node.daemon.why_no_reload),
        refresh=census.refresh,
        body_bytes_max=partial(_body_bytes_max, node.daemon),
        event_readers_max=settings.http.max_event_readers,
        metrics=node.metrics,
        log=log,
    )


def _body_bytes_max(daemon: Daemon) -> int:
    of_all = (one.settings.limits.max_payload_bytes for one in daemon.tenancies.values())
    return max(of_all) + ENVELOPE_BYTES


def _door(daemon: Daemon, census: Census, name: str) -> TenantDoor | None:
    tenancy = daemon.tenancies.get(name)
    if tenancy is None:
        return None
    limits = tenancy.settings.limits
    return TenantDoor(
        name=name,
        engine=tenancy.engine,
        limits=PayloadLimits(limits.max_payload_bytes, limits.max_payload_depth),
        catalog=lambda: daemon.catalog,
        snapshot=partial(census.counts, name),
        workers=tenancy.workers,
        decisions=tenancy.decisions,
        target=partial(_target, tenancy.engine),
        target_of=lambda record: record.target,
        feed=tenancy.chronicle.feed,
        at_rest=lambda: tenancy.background.is_at_rest,
        webhooks=tenancy.settings.webhooks.policy,
        schedules=lambda: of_tenant(tenancy.settings.schedules, name),
    )


async def _target(engine: Engine, name: str) -> TargetSeen:
    seen = await engine.target(name)
    if seen is None:
        return TargetSeen()
    holder = seen.holder
    return TargetSeen(holder.id, holder.state, seen.reserved, seen.behind, seen.first_behind)
