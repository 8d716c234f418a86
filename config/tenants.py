"""Tenants: their tables, defaults and constraints."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import attrs
from attrs import AttrsInstance, evolve

from musterd.config.document import Document
from musterd.config.faults import ConstraintFault, Fault
from musterd.config.settings import Limits, Settings, Tenant, TenantPlace, TenantWorkers
from musterd.config.strict import Key, NamedTables, Reading, read_table, unknown_key
from musterd.config.tenant_names import DEFAULT_TENANT, NAME, NAME_WANTED, beside, schema_of

TABLE = "tenants"
SCHEMA_LENGTH_MAX = 63

_SUBTABLES: Mapping[str, type[AttrsInstance]] = {"workers": TenantWorkers, "limits": Limits}
_FLOOR = 1  # of a tenant that says nothing of its workers

T = TypeVar("T", TenantPlace, TenantWorkers, Limits)


def settings_of(settings: Settings, name: str) -> Settings:
    """The settings as this tenant, which must exist, sees them."""
    tenant = settings.tenants[name]
    place, store = tenant.place, settings.store
    if place.url or place.url_file:
        # A direct connection belongs to the pooler of the node's own URL.
        store = evolve(store, url=place.url, url_file=place.url_file, listen_url="")
    counts = attrs.asdict(tenant.workers)
    return evolve(
        settings,
        store=evolve(store, schema=place.schema),
        workers=evolve(settings.workers, **counts),
        limits=tenant.limits,
        tenant=name,
    )


def attribute_of(path: Sequence[str]) -> "Key | None":
    """The key at `tenants.NAME.…`, if there is one."""
    match list(path):
        case [_, _, name]:
            return attrs.fields_dict(TenantPlace).get(name)
        case [_, _, table, name] if table in _SUBTABLES:
            return attrs.fields_dict(_SUBTABLES[table]).get(name)
        case _:
            return None


def _read_one(document: Document, name: str) -> Iterator[tuple[tuple[str, ...], Reading]]:
    path = (TABLE, name)
    table = cast(dict[str, object], document.at(path))
    place_keys = () if name == DEFAULT_TENANT else tuple(attrs.fields_dict(TenantPlace))
    known = (*place_keys, *_SUBTABLES)
    unknown = [unknown_key(document, (*path, key), known) for key in table if key not in known]
    if name == DEFAULT_TENANT:
        unknown = [_in_store(fault) for fault in unknown]
    yield path, Reading({}, tuple(unknown))
    plain = {key: value for key, value in table.items() if key in known and key not in _SUBTABLES}
    yield path, read_table(evolve(document, data={TABLE: {name: plain}}), path, TenantPlace)
    for key, shape in _SUBTABLES.items():
        if key in table:
            yield (*path, key), read_table(document, (*path, key), shape)


TABLES = NamedTables(TABLE, NAME, NAME_WANTED, _read_one)


def resolved(names: Sequence[str], values: Mapping[str, Any], settings: Settings) -> list[Tenant]:
    """The tenants, the default one first, with their defaults filled in."""
    return [_tenant(name, values, settings) for name in (DEFAULT_TENANT, *names)]


def broken_constraints(settings: Settings) -> Iterator[ConstraintFault]:
    for tenant in settings.tenants.values():
        yield from _broken_alone(tenant, settings)
    if len(settings.tenants) > 1:
        yield from _floors_too_high(settings)
        yield from _same_places(settings)


def _in_store(fault: Fault) -> Fault:
    key = fault.key.rpartition(".")[2]
    is_place = key in attrs.fields_dict(TenantPlace)
    return evolve(fault, hint=f"set store.{key}") if is_place else fault


def _tenant(name: str, values: Mapping[str, Any], settings: Settings) -> Tenant:
    own = f"{TABLE}.{name}"
    workers = settings.workers
    floor = workers.default_count if name == DEFAULT_TENANT else _FLOOR
    counts = TenantWorkers(floor, workers.max_count)
    place = TenantPlace("", "", schema_of(settings.store.schema, name)[:SCHEMA_LENGTH_MAX])
    return Tenant(
        name,
        _with_own(place, own, values),
        _with_own(counts, f"{own}.workers", values),
        _with_own(settings.limits, f"{own}.limits", values),
    )


def _with_own(table: T, prefix: str, values: Mapping[str, Any]) -> T:
    given = {
        name: values[f"{prefix}.{name}"]
        for name in attrs.fields_dict(type(table))
        if f"{prefix}.{name}" in values
    }
    return evolve(table, **given)


def _broken_alone(tenant: Tenant, settings: Settings) -> Iterator[ConstraintFault]:
    own, workers, place = f"{TABLE}.{tenant.name}", tenant.workers, tenant.place
    if workers.default_count > workers.max_count:
        keys = (f"{own}.workers.default_count", f"{own}.workers.max_count")
        wanted = f"default_count <= max_count (max_count is {workers.max_count})"
        yield ConstraintFault(keys, str(workers.default_count), wanted)
    if place.url and place.url_file:
        yield ConstraintFault(
            (f"{own}.url_file", f"{own}.url"), "both", "url or url_file, not both"
        )
    schema = schema_of(settings.store.schema, tenant.name)
    if len(schema) > SCHEMA_LENGTH_MAX and place.schema == schema[:SCHEMA_LENGTH_MAX]:
        wanted = f"a shorter schema than {schema}: at most {SCHEMA_LENGTH_MAX} characters"
        yield ConstraintFault((own,), "a long name", wanted, f"set {own}.schema")


def _floors_too_high(settings: Settings) -> Iterator[ConstraintFault]:
    floors = sum(tenant.workers.default_count for tenant in settings.tenants.values())
    most = settings.workers.max_count
    if floors > most:
        wanted = f"at least {floors}, the default_count of {len(settings.tenants)} tenants together"
        hint = "raise it, or lower default_count in [tenants.NAME.workers]"
        yield ConstraintFault(("workers.max_count",), str(most), wanted, hint)


def _same_places(settings: Settings) -> Iterator[ConstraintFault]:
    taken: dict[tuple[str, ...], str] = {}
    for tenant in settings.tenants.values():
        first = taken.setdefault(_place(settings, tenant), tenant.name)
        if first != tenant.name:
            own = f"{TABLE}.{tenant.name}"
            keys = tuple(f"{own}.{key}" for key in ("schema", "url", "url_file"))
            wanted = f"a store of its own; tenant {first} uses the same one"
            yield ConstraintFault((*keys, own), "another tenant's store", wanted)


def _place(settings: Settings, tenant: Tenant) -> tuple[str, ...]:
    """Identifies the tenant's store as well as possible without opening it."""
    place, store = tenant.place, settings.store
    if place.url.startswith("sqlite:"):
        return (place.url,)
    if place.url or place.url_file:
        return (place.url or place.url_file, place.schema)
    if store.url_file:
        return (store.url_file, place.schema)
    if store.url and not store.url.startswith("sqlite:"):
        return (store.url, place.schema)
    return (beside(store.url or "sqlite:///musterd.db", tenant.name),)
