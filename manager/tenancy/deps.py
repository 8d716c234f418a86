"""What a tenancy is made of."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from uuid import UUID

import attrs

from musterd.catalog.kinds import Catalog
from musterd.config.live import LiveSettings
from musterd.manager.log import Log
from musterd.manager.metrics.instrumented import InstrumentedEngine
from musterd.manager.metrics.metrics import Metrics
from musterd.manager.node.process import machine_load
from musterd.manager.node.status import Configured
from musterd.manager.tenancy.tenant_limits import TenantLimits
from musterd.manager.webhooks.courier import Post


@attrs.frozen
class TenancyDeps:
    """What a tenancy is made of. `settings` are the tenant's own (`tenants.settings_of`). `engine`
    is not yet open. `environ` is what children of handlers may see of the daemon's. `node_id` says
    which node it is: another at each start, while names may come again.
    """

    settings: LiveSettings
    engine: InstrumentedEngine
    catalog: Callable[[], Catalog]
    tenant_limits: TenantLimits
    node: str
    node_id: UUID
    configured: Callable[[], Configured]
    rng: random.Random
    metrics: Metrics
    log: Log
    boottime: Callable[[], float]
    wall_clock: Callable[[], float]
    environ: Mapping[str, str] = attrs.field(factory=lambda: dict(os.environ))
    post: Post | None = None  # sends a webhook's request; None = over the network
    load: Callable[[], float | None] = machine_load

    @property
    def tenant(self) -> str:
        return self.settings.now.tenant
