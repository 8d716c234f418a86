"""What a new configuration means for a node that runs: what applies now, what needs a restart."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import attrs
from attrs import evolve, frozen

from musterd.config.retention import Retention
from musterd.config.settings import (
    CatalogSettings,
    Limits,
    Settings,
    Tenant,
    Webhooks,
    Workers,
    keys,
)
from musterd.config.tenant_names import schema_of
from musterd.config.tenants import TABLE

# What a running node takes over. Where modules are found is asked with each catalog that is read.
LIVE_KEYS = frozenset(
    {
        "workers.default_count",
        "workers.max_count",
        "workers.scale_interval_ms",
        "limits.max_payload_bytes",
        "limits.max_payload_depth",
        "limits.max_result_bytes",
        "limits.max_log_bytes",
        "limits.max_running",
        "catalog.paths",
        "duties.lease_seconds",
        "duties.heartbeat_seconds",
        *(key for key in keys() if key.startswith("webhooks.")),
        *(f"retention.{name}" for name in attrs.fields_dict(Retention)),
    }
)

T = TypeVar("T", Workers, Limits, Webhooks, CatalogSettings)


@frozen
class Changes:
    """The difference between two configurations. `settings` are those that hold from now on: the
    new ones as far as they apply, the old ones for what needs a restart. A tenant that `moved` has
    another store.
    """

    settings: Settings
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


def changes(old: Settings, new: Settings) -> Changes:
    """Both are the node's own settings, as `load` gives them."""
    changed = [key for key in keys() if _value(old, key) != _value(new, key)]
    tenants = {name: _where_it_was(tenant, old, new) for name, tenant in new.tenants.items()}
    both = [name for name in tenants if name in old.tenants]
    live, restart = _split(changed, old.tenants, tenants)
    kept = evolve(
        old,
        workers=_with_live(old.workers, new.workers, "workers"),
        limits=_with_live(old.limits, new.limits, "limits"),
        webhooks=_with_live(old.webhooks, new.webhooks, "webhooks"),
        catalog=_with_live(old.catalog, new.catalog, "catalog"),
        retention=new.retention,
        duties=evolve(new.duties, mode=old.duties.mode),
        schedules=new.schedules,
        tenants={name: _as_far_as_live(tenant, old) for name, tenant in tenants.items()},
    )
    return Changes(
        settings=kept,
        added=tuple(name for name in tenants if name not in old.tenants),
        removed=tuple(name for name in old.tenants if name not in tenants),
        moved=tuple(name for name in both if tenants[name].place != old.tenants[name].place),
        live=(*live, *_schedules_changed(old, new)),
        restart=restart,
    )


def _split(
    changed: list[str], before: Mapping[str, Tenant], now: Mapping[str, Tenant]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    of_tenants = [
        f"{TABLE}.{name}.{table}.{key}"
        for name in now
        if name in before
        for table in ("workers", "limits")
        for key in _differing(getattr(before[name], table), getattr(now[name], table))
        if f"{table}.{key}" not in changed
    ]
    found = [*changed, *of_tenants]
    live = tuple(key for key in found if _plain(key) in LIVE_KEYS)
    return live, tuple(key for key in found if _plain(key) not in LIVE_KEYS)


def _schedules_changed(old: Settings, new: Settings) -> list[str]:
    names = sorted(old.schedules.keys() | new.schedules.keys())
    return [f"schedules.{name}" for name in names if _differs(old, new, name)]


def _differs(old: Settings, new: Settings, name: str) -> bool:
    """Where it stands in its file says nothing."""
    before, now = old.schedules.get(name), new.schedules.get(name)
    if before is None or now is None:
        return True
    return evolve(before, source="") != evolve(now, source="")


def _plain(key: str) -> str:
    """A tenant's key as the node has it."""
    return ".".join(key.split(".")[-2:])


def _differing(one: attrs.AttrsInstance, other: attrs.AttrsInstance) -> list[str]:
    names = attrs.fields_dict(type(one))
    return [name for name in names if getattr(one, name) != getattr(other, name)]


def _value(settings: Settings, key: str) -> object:
    section, name = key.split(".")
    return cast(object, getattr(getattr(settings, section), name))


def _with_live(old: T, new: T, section: str) -> T:
    """The old table, with what applies now taken from the new one."""
    live = [key.partition(".")[2] for key in LIVE_KEYS if key.startswith(f"{section}.")]
    fresh: dict[str, Any] = {name: getattr(new, name) for name in live}
    return evolve(old, **fresh)


def _where_it_was(tenant: Tenant, old: Settings, new: Settings) -> Tenant:
    """A tenant that names no schema of its own goes by the node's, which needs a restart."""
    if tenant.place.schema != schema_of(new.store.schema, tenant.name):
        return tenant
    schema = schema_of(old.store.schema, tenant.name)
    return evolve(tenant, place=evolve(tenant.place, schema=schema))


def _as_far_as_live(tenant: Tenant, old: Settings) -> Tenant:
    before = old.tenants.get(tenant.name)
    if before is None:
        return tenant
    return evolve(tenant, limits=_with_live(before.limits, tenant.limits, "limits"))
