"""Settings for a measurement: the store's own, with nothing in them that others would notice."""

from __future__ import annotations

import os

from attrs import evolve

from musterd.config.load import SHIPPED_FILE, load
from musterd.config.settings import Settings, Tenant, TenantPlace, TenantWorkers
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.store.scratch import Scratch

QUIET = ("http.listen=", "log.level=error", "shutdown.grace_period_seconds=3")


def bench_settings(own: Settings, place: Scratch, workers: int) -> Settings:
    """How the store is reached, how claims are made and leases are kept, as `own` says; a crew of
    `workers`, no more and no less. No schedules, webhooks, hooks, other tenants, HTTP: as shipped.
    """
    shipped = load(SHIPPED_FILE, {}, QUIET).settings
    limits = evolve(own.limits, max_running=0)
    crew = TenantWorkers(workers, workers)
    tenant = Tenant(DEFAULT_TENANT, TenantPlace("", "", place.schema), crew, limits)
    return evolve(
        shipped,
        store=evolve(own.store, url=place.url, url_file="", schema=place.schema, migrate=True),
        workers=evolve(own.workers, default_count=workers, max_count=workers),
        leases=own.leases,
        limits=limits,
        tenants={DEFAULT_TENANT: tenant},
    )


def cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
