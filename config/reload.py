"""What a new configuration means for a node that runs: what applies, when, and what does not."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

import attrs
from attrs import AttrsInstance, evolve, field, frozen

from musterd.config.differences import Change, Named, named_changes, shown
from musterd.config.faults import Fault
from musterd.config.rules import RULES
from musterd.config.schedules import as_written
from musterd.config.settings import Limits, Settings, Tenant, TenantPlace, keys, sections
from musterd.config.tenant_names import schema_of
from musterd.config.tenants import TABLE
from musterd.config.toml_text import toml_text
from musterd.config.validators import When

T = TypeVar("T", bound=AttrsInstance)


def applies(key: str) -> When:
    """When a running node goes by another value of this key (`section.name`)."""
    return cast(When, keys()[key].metadata["applies"])


LIVE_KEYS = frozenset(key for key in keys() if applies(key) != "restart")


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
    keys: tuple[Change, ...] = ()
    schedules: Named = field(factory=Named)

    @property
    def live(self) -> tuple[str, ...]:
        """The keys that apply, and the schedules."""
        found = [one.key for one in self.keys if one.when != "restart"]
        return (*found, *(f"schedules.{name}" for name in self.schedules.names))

    @property
    def restart(self) -> tuple[str, ...]:
        return tuple(one.key for one in self.keys if one.when == "restart")


def changes(old: Settings, new: Settings) -> Changes:
    """Both are the node's own settings, as `load` gives them."""
    tenants = {name: _where_it_was(tenant, old, new) for name, tenant in new.tenants.items()}
    both = [name for name in tenants if name in old.tenants]
    kept: dict[str, Any] = {
        section: _with_live(getattr(old, section), getattr(new, section), section)
        for section in sections()
    }
    return Changes(
        settings=evolve(
            old,
            **kept,
            schedules=new.schedules,
            tenants={name: _as_far_as_live(tenant, old) for name, tenant in tenants.items()},
        ),
        added=tuple(name for name in tenants if name not in old.tenants),
        removed=tuple(name for name in old.tenants if name not in tenants),
        moved=tuple(name for name in both if tenants[name].place != old.tenants[name].place),
        keys=tuple(_changed(old, new, tenants)),
        schedules=named_changes(_written(old), _written(new), "at once"),
    )


def unsound(found: Changes) -> list[Fault]:
    """What would not hold any more between what applies now and what waits for a restart."""
    return [
        _waits_for_restart(found, key, rule.wanted)
        for rule in RULES
        for key in [next((key for key in rule.keys if key in found.restart), None)]
        if key is not None and not rule.defaults_give_way and not rule.holds(found.settings)
    ]


def _waits_for_restart(found: Changes, key: str, wanted: str) -> Fault:
    """The key that is behind: the node goes by its old value, which does not fit the others."""
    still = next(toml_text(one.before) for one in found.keys if one.key == key)
    hint = f"{key} changes only at a restart: restart the node, or leave the others as they were"
    return Fault("while the node runs", None, key, f"{still} until a restart", wanted, hint)


def _changed(old: Settings, new: Settings, tenants: Mapping[str, Tenant]) -> Iterator[Change]:
    whole: set[tuple[str, object, object]] = set()
    for key, attribute in keys().items():
        before, after = _value(old, key), _value(new, key)
        if before != after:
            yield Change(key, shown(attribute, before), shown(attribute, after), applies(key))
            whole.add((key, repr(before), repr(after)))
    of_tenants = (
        each
        for name, tenant in tenants.items()
        if name in old.tenants
        for each in _of_tenant(old.tenants[name], tenant)
    )
    for key, change in of_tenants:
        # What a tenant has from the node's own tables has been said.
        if (key, repr(change.before), repr(change.after)) not in whole:
            yield change


def _of_tenant(before: Tenant, now: Tenant) -> Iterator[tuple[str, Change]]:
    """Each change with the node's own key that it stands for."""
    own = f"{TABLE}.{now.name}"
    for name, attribute in attrs.fields_dict(TenantPlace).items():
        was, will = getattr(before.place, name), getattr(now.place, name)
        if was != will:
            told = shown(attribute, was), shown(attribute, will)
            yield f"store.{name}", Change(f"{own}.{name}", *told, "at once")
    for table in ("workers", "limits"):
        old: AttrsInstance = getattr(before, table)
        new: AttrsInstance = getattr(now, table)
        for name, attribute in attrs.fields_dict(type(old)).items():
            was, will = getattr(old, name), getattr(new, name)
            if was != will:
                key = f"{table}.{name}"
                told = shown(attribute, was), shown(attribute, will)
                yield key, Change(f"{own}.{key}", *told, applies(key))


def _written(settings: Settings) -> Mapping[str, Mapping[str, object]]:
    """Where a schedule stands in its file says nothing."""
    return {name: as_written(one) for name, one in settings.schedules.items()}


def _value(settings: Settings, key: str) -> object:
    section, name = key.split(".")
    return cast(object, getattr(getattr(settings, section), name))


def _with_live(old: T, new: T, section: str) -> T:
    """The old table, with what applies now taken from the new one."""
    names = [name for name in attrs.fields_dict(type(old)) if f"{section}.{name}" in LIVE_KEYS]
    fresh: dict[str, Any] = {name: getattr(new, name) for name in names}
    return cast(T, evolve(cast(Any, old), **fresh))


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
    limits: Limits = _with_live(before.limits, tenant.limits, "limits")
    return evolve(tenant, limits=limits)
