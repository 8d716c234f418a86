"""What a tenancy is made of, and what its desk is told."""

from __future__ import annotations

import logging
import math
import os
import random
import time
from collections.abc import Callable, Mapping
from uuid import UUID

import attrs

from musterd.catalog.kinds import Catalog
from musterd.config.leasing import lease_plan
from musterd.config.settings import Settings
from musterd.manager.duties.retention import RetentionDeps
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.metrics.watched import WatchedEngine
from musterd.manager.node.status import Configured
from musterd.manager.tenancy.tenant_limits import TenantLimits
from musterd.manager.webhooks.courier import Post
from musterd.workers.claiming.desk import Desk
from musterd.workers.claiming.desk_plan import DeskPlan


def boottime() -> float:
    """Seconds on the clock that runs on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def machine_load() -> float | None:
    """The load of this machine in the last minute, for each core; None = it does not say."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return None


def end_process() -> None:
    """At once, as a drained daemon ends: whatever still runs in it ends too."""
    logging.shutdown()
    os._exit(0)


@attrs.frozen
class TenancyDeps:
    """What a tenancy is made of. `settings` are the tenant's own (`tenants.settings_of`). `engine`
    is not yet open. `environ` is what children of handlers may see of the daemon's. `node_id` says
    which node it is: another at each start, while names may come again.
    """

    settings: Settings
    engine: WatchedEngine
    catalog: Callable[[], Catalog]
    tenant_limits: TenantLimits
    node: str
    node_id: UUID
    configured: Callable[[], Configured]
    rng: random.Random
    metrics: Metrics
    log: logging.Logger
    boottime: Callable[[], float]
    wall_clock: Callable[[], float]
    environ: Mapping[str, str] = attrs.field(factory=lambda: dict(os.environ))
    post: Post | None = None  # sends a webhook's request; None = over the network
    load: Callable[[], float | None] = machine_load


def desk_plan(plan: TenancyDeps, settings: Callable[[], Settings]) -> DeskPlan:
    """`settings` are the tenant's own, of the moment."""
    now = settings()
    leases = lease_plan(now)
    return DeskPlan(
        node=plan.node,
        lease_seconds=leases.lease_seconds,
        margin_seconds=leases.margin_seconds,
        poll_seconds=now.workers.poll_interval_ms / 1000,
        batch_max=now.limits.claim_batch,
        ahead_seconds=now.limits.claim_ahead_ms / 1000,
        bounds=lambda: (plan.catalog().caps, settings().limits.max_running or None),
    )


def retune(desk: Desk, plan: TenancyDeps, settings: Callable[[], Settings], *, rests: bool) -> None:
    """Makes a desk at work go by these settings. Where it `rests`, somebody else looks at the
    queue.
    """
    desk.plan, pacing = desk_plan(plan, settings), desk.pacing
    pacing.batch_max, pacing.ahead_seconds = desk.plan.batch_max, desk.plan.ahead_seconds
    pacing.poll_seconds = math.inf if rests else desk.plan.poll_seconds
    desk.poll()  # the next look may have been planned for long after


def retention_deps(plan: TenancyDeps, settings: Callable[[], Settings]) -> RetentionDeps:
    """`settings` are the tenant's own, of the moment."""
    return RetentionDeps(
        store=plan.engine.retention,
        settings=lambda: settings().retention,
        catalog=plan.catalog,
        tenant=plan.settings.tenant,
        rng=plan.rng,
        log=plan.log,
    )
