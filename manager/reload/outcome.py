"""The outcome of a reload: values, log lines, JSON objects."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from attrs import field, frozen

from musterd.catalog.kinds import Catalog
from musterd.config.changes import Change, Changes, NamedChanges
from musterd.config.secrets import MASK
from musterd.config.toml_text import toml_text
from musterd.manager.log import event, event_of_list
from musterd.store.words import cut

Fields: TypeAlias = dict[str, object]
Line: TypeAlias = tuple[int, str, Fields]

LINES_MAX = 200  # of one reload
VALUE_LENGTH_MAX = 200


@frozen
class ReloadTaken:
    """The new configuration is in effect. `generation` counts those since the start."""

    generation: int
    changes: Changes
    kinds: NamedChanges = field(factory=NamedChanges)

    @property
    def result(self) -> str:
        """Whether anything changed that does not need a restart."""
        found = self.changes
        tenants = (*found.added, *found.removed, *found.moved)
        return "applied" if found.live or tenants or self.kinds.names else "unchanged"


@frozen
class ReloadRefused:
    """Nothing changed; one line for each fault."""

    generation: int
    faults: tuple[str, ...]


@frozen
class ReloadUnavailable:
    """The node cannot reload now, and did not try."""

    why: str


ReloadOutcome: TypeAlias = ReloadTaken | ReloadRefused | ReloadUnavailable


def difference_object(found: Changes, kinds: NamedChanges) -> dict[str, Any]:
    """Every difference, secrets masked."""
    return {
        "changed": _keys(found.keys),
        "restart": list(found.restart),
        "tenants": {
            "added": list(found.added),
            "removed": list(found.removed),
            "moved": list(found.moved),
        },
        "kinds": _named(kinds),
        "schedules": _named(found.schedules),
    }


def reload_object(node: str, taken: ReloadTaken) -> dict[str, Any]:
    head = {"node": node, "result": taken.result, "generation": taken.generation}
    return head | difference_object(taken.changes, taken.kinds)


def _keys(changes: Iterable[Change]) -> list[dict[str, object]]:
    return [
        {"key": one.key, "from": one.before, "to": one.after, "applies": one.when}
        for one in changes
    ]


def _named(found: NamedChanges) -> dict[str, object]:
    return {
        "added": list(found.added),
        "changed": [{"name": one.name, "keys": _keys(one.keys)} for one in found.changed],
        "removed": list(found.removed),
    }


def log_taken(log: logging.Logger, taken: ReloadTaken, catalog: Catalog) -> None:
    """One line per difference, up to a limit, and a summary; `catalog` is the new one."""
    found = taken.changes
    lines = list(_lines(found, taken.kinds))
    for level, phrase, fields in lines[:LINES_MAX]:
        event_of_list(log, level, phrase, **fields)
    for kind in catalog.values():
        if kind.broken is not None:
            event_of_list(log, logging.WARNING, "kind broken", kind=kind.name, message=kind.broken)
    more = {"lines_left_out": len(lines) - LINES_MAX} if len(lines) > LINES_MAX else {}
    names_by_field = {
        "added": found.added,
        "removed": found.removed,
        "moved": found.moved,
        "changed": found.live,
    }
    listed = {name: _some(names) for name, names in names_by_field.items() if names}
    event(
        log, logging.INFO, "reloaded", generation=taken.generation, result=taken.result,
        kinds=len(catalog), **listed, **more,
    )  # fmt: skip


def _lines(found: Changes, kinds: NamedChanges) -> Iterator[Line]:
    for one in found.keys:
        if one.when == "restart":
            yield logging.WARNING, "needs a restart", _fields(one)
        else:
            yield logging.INFO, "setting changed", _fields(one) | {"applies": one.when}
    yield from _of_named("kind", kinds)
    yield from _of_named("schedule", found.schedules)


def _of_named(what: str, named: NamedChanges) -> Iterator[Line]:
    for name in named.added:
        yield logging.INFO, f"{what} added", {what: name}
    for altered in named.changed:
        for one in altered.keys:
            yield logging.INFO, f"{what} changed", {what: altered.name, **_fields(one)}
    for name in named.removed:
        yield logging.INFO, f"{what} removed", {what: name}


def _fields(one: Change) -> Fields:
    return {"key": one.key, "from": value_text(one.before), "to": value_text(one.after)}


def value_text(value: object) -> str:
    """As TOML, cut to fit a line; `-` for no value."""
    if value is None or value == MASK:
        return "-" if value is None else MASK
    return cut(toml_text(value), VALUE_LENGTH_MAX)


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - LINES_MAX
    return ",".join(names[:LINES_MAX]) + (f",... and {more} more" if more > 0 else "")
