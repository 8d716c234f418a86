"""What differs between two catalogs, kind by kind, as values that can be told: secrets masked."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import attrs

from musterd.catalog.kinds import Catalog, Pipeline, WorkKind
from musterd.config.differences import Named, named_changes
from musterd.config.secrets import mask_headers, mask_url
from musterd.config.toml_text import plain

# Where a kind stands, and whether it can run here, is not what it is.
_LEFT_OUT = frozenset({"name", "source", "broken", "phase", "behaviour"})
_TOLD_AS: Mapping[str, Callable[[Any], object]] = {
    "headers": mask_headers,
    "url": mask_url,
    "webhook": lambda url: url and mask_url(url),
}


def kind_changes(old: Catalog, new: Catalog) -> Named:
    """Jobs that start from now on go by the new ones."""
    return named_changes(_told_of_all(old), _told_of_all(new), "next job")


def _told_of_all(catalog: Catalog) -> Mapping[str, Mapping[str, object]]:
    return {name: dict(_told(kind)) for name, kind in catalog.items()}


def _told(kind: WorkKind) -> Iterator[tuple[str, object]]:
    behaviour = kind.behaviour
    if isinstance(behaviour, Pipeline):
        yield "phases", list(behaviour.names)
        for phase in behaviour.phases:
            yield f"phases.{phase.name}.input", phase.input
            for key, value in _told(phase.kind):
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
            yield key, _plain(_TOLD_AS[name](value) if name in _TOLD_AS else value)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        named = cast("Mapping[str, object]", value)
        return {name: _plain(each) for name, each in named.items()}
    return str(value) if isinstance(value, Path) else plain(value)
