"""What differs between two configurations, and which of it a running node adopts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import attrs
from attrs import Attribute, AttrsInstance, evolve, field, frozen

from musterd.config.constraints import CONSTRAINTS, value_of
from musterd.config.faults import Fault
from musterd.config.schedules import as_written
from musterd.config.settings import Limits, Settings, Tenant, keys, sections
from musterd.config.tenant_names import schema_of
from musterd.config.tenants import TABLE
from musterd.config.toml_text import plain, toml_text
from musterd.config.validators import When

T = TypeVar("T", bound=AttrsInstance)
Values: TypeAlias = Mapping[str, object]  # in JSON's types, by dotted key


@frozen
class Change:
    """A key with another value; None = the key did not exist, or no longer does."""

    key: str
    before: object
    after: object
    when: When


@frozen
class Altered:
    """A kind or a schedule with other values."""

    name: str
    keys: tuple[Change, ...]


@frozen
class NamedChanges:
    """What differs between two sets of named things: kinds, or schedules."""

    added: tuple[str, ...] = ()
    changed: tuple[Altered, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted((*self.added, *self.removed, *(one.name for one in self.changed))))


def named_changes(old: Mapping[str, Values], new: Mapping[str, Values], when: When) -> NamedChanges:
    both = sorted(old.keys() & new.keys())
    altered = [Altered(name, value_changes(old[name], new[name], when)) for name in both]
    return NamedChanges(
        added=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(one for one in altered if one.keys),
        removed=tuple(sorted(old.keys() - new.keys())),
    )


def value_changes(old: Values, new: Values, when: When) -> tuple[Change, ...]:
    """In the order of the old keys, then the new ones."""
    names = {**old, **new}
    return tuple(
        Change(name, old.get(name), new.get(name), when)
        for name in names
        if old.get(name) != new.get(name)
    )


def shown(attribute: "Attribute[object]", value: object) -> object:
    """A setting's value in JSON types, with secrets as `***`."""
    mask = attribute.metadata.get("mask")
    return mask(value) if mask else plain(value)


def applies(key: str) -> When:
    """When a running node adopts a new value of this key (`section.name`)."""
    return cast(When, keys()[key].metadata["applies"])


LIVE_KEYS = frozenset(key for key in keys() if applies(key) != "restart")


@frozen
class Changes:
    """The difference between two configurations. `settings` are in effect from now on: keys that
    need a restart keep their old values. A tenant that `moved` has another store.
    """

    settings: Settings
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    keys: tuple[Change, ...] = ()
    schedules: NamedChanges = field(factory=NamedChanges)

    @property
    def live(self) -> tuple[str, ...]:
        found = [one.key for one in self.keys if one.when != "restart"]
        return (*found, *(f"schedules.{name}" for name in self.schedules.names))

    @property
    def restart(self) -> tuple[str, ...]:
        return tuple(one.key for one in self.keys if one.when == "restart")


def changes(old: Settings, new: Settings) -> Changes:
    """Compares two configurations of a node, as `load` returns them."""
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
    """Constraints that the new values break together with old ones that wait for a restart."""
    return [
        _waits_for_restart(found, key, constraint.wanted)
        for constraint in CONSTRAINTS
        for key in [next((key for key in constraint.keys if key in found.restart), None)]
        if key is not None
        and not constraint.defaults_give_way
        and not constraint.holds(found.settings)
    ]


def _waits_for_restart(found: Changes, key: str, wanted: str) -> Fault:
    """Blames the key that keeps its old value."""
    still = next(toml_text(one.before) for one in found.keys if one.key == key)
    hint = f"{key} changes only at a restart: restart the node, or leave the other keys unchanged"
    return Fault("while the node runs", None, key, f"{still} until a restart", wanted, hint)


def _changed(old: Settings, new: Settings, tenants: Mapping[str, Tenant]) -> Iterator[Change]:
    whole: set[tuple[str, object, object]] = set()
    for key, attribute in keys().items():
        before, after = value_of(old, key), value_of(new, key)
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
        # A value that the tenant takes from the node has been reported once.
        if (key, repr(change.before), repr(change.after)) not in whole:
            yield change


def _of_tenant(before: Tenant, now: Tenant) -> Iterator[tuple[str, Change]]:
    """Each change, with the node's key that it overrides."""
    own = f"{TABLE}.{now.name}"
    tables: Sequence[tuple[str, str, AttrsInstance, AttrsInstance]] = (
        ("store", "", before.place, now.place),
        ("workers", "workers.", before.workers, now.workers),
        ("limits", "limits.", before.limits, now.limits),
    )
    for table, inner, old, new in tables:
        for name, attribute in attrs.fields_dict(type(old)).items():
            was, will = getattr(old, name), getattr(new, name)
            if was != will:
                key, values = f"{table}.{name}", (shown(attribute, was), shown(attribute, will))
                when = applies(key) if inner else "at once"
                yield key, Change(f"{own}.{inner}{name}", *values, when)


def _written(settings: Settings) -> Mapping[str, Mapping[str, object]]:
    return {name: as_written(one) for name, one in settings.schedules.items()}


def _with_live(old: T, new: T, section: str) -> T:
    """The old table with the new values of the keys that apply at once."""
    names = [name for name in attrs.fields_dict(type(old)) if f"{section}.{name}" in LIVE_KEYS]
    fresh: dict[str, Any] = {name: getattr(new, name) for name in names}
    return cast(T, evolve(cast(Any, old), **fresh))


def _where_it_was(tenant: Tenant, old: Settings, new: Settings) -> Tenant:
    """A tenant without its own schema uses the node's, which changes only at a restart."""
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
