"""What a node and its tenancies are made of."""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable, Collection, Mapping
from uuid import UUID

import attrs

from musterd.catalog.kinds import Catalog
from musterd.config.changes import Changes
from musterd.config.settings import LiveSettings, Settings
from musterd.manager.duties.small_steps import InSmallSteps, in_small_steps
from musterd.manager.log import Log
from musterd.manager.metrics.metrics import InstrumentedEngine, Metrics
from musterd.manager.node.machine import read_machine
from musterd.manager.node.process import boottime, end_process, machine_load
from musterd.manager.node.status import Configured
from musterd.manager.node.systemd import ServiceManager
from musterd.manager.scaling.guard import Machine
from musterd.manager.scaling.supervisor import TenantLimits
from musterd.manager.tracing.carrying import Tracing
from musterd.manager.webhooks.courier import Post
from musterd.store.idle_tenant_scan import TenantScan


@attrs.frozen
class TenancyDeps:
    """`settings` are the tenant's own (`tenants.settings_of`). `engine` is not open yet. `environ`
    is what handlers' children may see. `node_id` is new at each start, while names may recur.
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
    own_port: Callable[[], int | None] = lambda: None  # where the web side listens
    load: Callable[[], float | None] = machine_load
    machine: Callable[[], Machine] = read_machine
    tracing: Tracing | None = None  # None = off
    compute: InSmallSteps = in_small_steps  # what takes long, where the loop does not wait for it

    @property
    def tenant(self) -> str:
        return self.settings.now.tenant


@attrs.frozen
class DaemonDeps:
    """`engine` is the default tenant's, `engine_of` makes the others; the daemon opens and closes
    them. `reread` reads configuration and catalog for a reload. `read_secrets` reads secret files
    and returns a function that puts them to use and names the keys whose secrets alone changed.
    """

    settings: Settings
    catalog: Catalog
    engine: InstrumentedEngine
    node: str
    rng: random.Random
    metrics: Metrics
    log: logging.Logger
    boottime: Callable[[], float] = boottime
    wall_clock: Callable[[], float] = time.time
    engine_of: Callable[[Settings], InstrumentedEngine] | None = None
    scans: Callable[[], Collection[TenantScan]] = tuple
    # These two raise ConfigError, and may block.
    reread: Callable[[], tuple[Settings, Catalog]] | None = None
    read_secrets: Callable[[Changes], Callable[[], Collection[str]]] = lambda _: tuple
    forget: Callable[[str], None] = lambda _: None  # this tenant's engine is closed
    post: Post | None = None  # see `TenancyDeps`
    own_port: Callable[[], int | None] = lambda: None
    load: Callable[[], float | None] = machine_load
    machine: Callable[[], Machine] = read_machine
    abandon: Callable[[int], None] = end_process  # work goes on that nothing else can end
    tracing: Tracing | None = None
    compute: InSmallSteps = in_small_steps
    service_manager: ServiceManager | None = None  # None = nobody waits to hear from us
