"""What differs between catalogs, whether a running node can adopt a new one, and a hash of what the
nodes of a store must agree on: not secrets, nor what may differ between machines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import attrs

from musterd.catalog.kinds import Catalog, Pipeline, WorkKind
from musterd.config.changes import Changes, NamedChanges, named_changes, unsound
from musterd.config.faults import ConfigError, Fault
from musterd.config.retention import IN_TABLE
from musterd.config.schedules import as_written
from musterd.config.secrets import MASKS, mask_url
from musterd.config.settings import Settings
from musterd.config.toml_text import plain

# Where a kind is written, and whether it can run here, is not part of what it is.
_LEFT_OUT = frozenset({"name", "source", "broken", "phase", "behaviour"})


def kind_changes(old: Catalog, new: Catalog) -> NamedChanges:
    """The changed kinds, secrets masked."""
    return named_changes(_values_by_kind(old), _values_by_kind(new), "next job")


def check_takeover(found: Changes, old: Catalog, new: Catalog) -> None:
    """Raises ConfigError with all reasons why a running node cannot adopt the new configuration."""
    if faults := [*unsound(found), *_newly_broken(old, new)]:
        raise ConfigError(faults)


def _newly_broken(old: Catalog, new: Catalog) -> Iterator[Fault]:
    """A kind that was already broken is not a fault: it may be meant for other nodes."""
    for name, kind in new.items():
        before = old.get(name)
        if kind.broken is not None and (before is None or before.broken is None):
            yield Fault(kind.broken, hint="if this node is to do without it, restart the node")


def _values_by_kind(catalog: Catalog) -> Mapping[str, Mapping[str, object]]:
    return {name: dict(_values_of(kind)) for name, kind in catalog.items()}


def _values_of(kind: WorkKind) -> Iterator[tuple[str, object]]:
    behaviour = kind.behaviour
    if isinstance(behaviour, Pipeline):
        yield "phases", list(behaviour.names)
        for phase in behaviour.phases:
            yield f"phases.{phase.name}.input", phase.input
            for key, value in _values_of(phase.kind):
                yield f"phases.{phase.name}.{key}", value
    else:
        yield from _values(type(behaviour).__name__.lower(), behaviour)
    yield from _values("", kind)


def _values(prefix: str, table: attrs.AttrsInstance) -> Iterator[tuple[str, object]]:
    for name in attrs.fields_dict(type(table)):
        value = cast(object, getattr(table, name))
        key = f"{prefix}.{name}" if prefix else name
        if name in _LEFT_OUT:
            continue
        if attrs.has(type(value)):
            yield from _values(key, cast("attrs.AttrsInstance", value))
        else:
            yield key, _plain(MASKS[name](value) if name in MASKS else value)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        named = cast("Mapping[str, object]", value)
        return {name: _plain(each) for name, each in named.items()}
    return str(value) if isinstance(value, Path) else plain(value)


DIGITS = 12
WHOLE_TABLES = ("retry", "limits", "leases", "duties", "events", "retention")

# Of kinds and tables, by the names of their keys.
_MAY_DIFFER = frozenset({"source", "broken", "search_path", "cwd", "secret", "secret_file"})
_SHOWN_AS: Mapping[str, Callable[[Any], object]] = {
    **MASKS,
    "on_stale": mask_url,
    "on_delete": mask_url,
    "header_files": sorted,  # which headers come from files
    "archive": lambda place: place if place in ("", IN_TABLE) else "file",
}


def fingerprint(settings: Settings, catalog: Catalog) -> str:
    """`DIGITS` hexadecimal digits, equal where the same configuration is in effect. `settings` are
    the node's own. Other versions of musterd may give other digits.
    """
    return _digits(_whole(settings, catalog))


def kind_fingerprints(catalog: Catalog) -> dict[str, str]:
    """For each kind digits that are equal where it is the same."""
    return {name: _digits(_canonical(kind)) for name, kind in catalog.items()}


def _digits(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _whole(settings: Settings, catalog: Catalog) -> dict[str, object]:
    webhooks = settings.webhooks
    # Where the secret comes from may differ, not whether there is one.
    is_signed = bool(webhooks.secret or webhooks.secret_file)
    return {
        **{table: _canonical(getattr(settings, table)) for table in WHOLE_TABLES},
        "kinds": _canonical(catalog),
        "lease_timeout_seconds": _canonical(settings.workers.lease_timeout_seconds),
        "schedules": _canonical(
            {name: as_written(one) for name, one in settings.schedules.items()}
        ),
        "tenants": {
            name: {"schema": tenant.place.schema, "limits": _canonical(tenant.limits)}
            for name, tenant in settings.tenants.items()
        },
        "webhooks": {"signed": is_signed, "table": _canonical(webhooks)},
    }


def _canonical(value: object) -> object:
    """JSON with one spelling per value. Raises TypeError for objects of other types."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        named = cast("Mapping[str, object]", value)
        return {name: _canonical(each) for name, each in named.items()}
    if isinstance(value, tuple | list):
        return [_canonical(each) for each in cast("tuple[object, ...]", value)]
    if attrs.has(type(value)):
        keys = _keys(cast("attrs.AttrsInstance", value))
        return {"is": type(value).__name__, "keys": keys}
    raise TypeError(f"found {type(value).__name__}, wanted what JSON can hold")


def _keys(table: attrs.AttrsInstance) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, key in attrs.fields_dict(type(table)).items():
        if name not in _MAY_DIFFER:
            own: Callable[[Any], object] | None = key.metadata.get("mask")
            shown_as = own or _SHOWN_AS.get(name)
            value = getattr(table, name)
            found[name] = _canonical(shown_as(value) if shown_as is not None else value)
    return found
