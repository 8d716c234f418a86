"""What a tenancy is made of, and what its desk is told."""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable, Mapping

import attrs

from musterd.catalog.kinds import Catalog
from musterd.config.leasing import lease_plan
from musterd.config.settings import Settings
from musterd.manager.headcount import Headcount
from musterd.manager.metrics import Metrics
from musterd.manager.retention import RetentionPlan
from musterd.manager.watched import WatchedEngine
from musterd.manager.webhooks.courier import Post
from musterd.workers.desk import DeskPlan


def boottime() -> float:
    """Seconds on the clock that runs on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@attrs.frozen
class TenancyPlan:
    """What a tenancy is made of. `settings` are the tenant's own (`tenants.settings_of`). `engine`
    is not yet open. `environ` is what children of handlers may see of the daemon's.
    """

    settings: Settings
    engine: WatchedEngine
    catalog: Callable[[], Catalog]
    headcount: Headcount
    node: str
    dice: random.Random
    metrics: Metrics
    log: logging.Logger
    boottime: Callable[[], float]
    wall_clock: Callable[[], float]
    environ: Mapping[str, str] = attrs.field(factory=lambda: dict(os.environ))
    post: Post | None = None  # sends a webhook's request; None = over the network


def desk_plan(plan: TenancyPlan) -> DeskPlan:
    settings, leases = plan.settings, lease_plan(plan.settings)
    return DeskPlan(
        node=plan.node,
        lease_seconds=leases.lease_seconds,
        margin_seconds=leases.margin_seconds,
        poll_seconds=settings.workers.poll_interval_ms / 1000,
        batch_max=settings.limits.claim_batch,
        ahead_seconds=settings.limits.claim_ahead_ms / 1000,
        caps=lambda: plan.catalog().caps,
    )


def retention_plan(plan: TenancyPlan, settings: Callable[[], Settings]) -> RetentionPlan:
    """`settings` are the tenant's own, of the moment."""
    return RetentionPlan(
        store=plan.engine.retention,
        settings=lambda: settings().retention,
        catalog=plan.catalog,
        tenant=plan.settings.tenant,
        dice=plan.dice,
        log=plan.log,
    )
