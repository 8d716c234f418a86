"""What differs between two catalogs, and whether a running node can adopt the new one."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import attrs

from musterd.catalog.kinds import Catalog, Pipeline, WorkKind
from musterd.config.changes import Changes, NamedChanges, named_changes, unsound
from musterd.config.faults import ConfigError, Fault
from musterd.config.secrets import MASKS
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
