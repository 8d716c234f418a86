"""What the log says of a reload: a line for each thing that is different, up to a bound."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TypeAlias

from musterd.catalog.kinds import Catalog
from musterd.config.differences import Change, Named
from musterd.config.reload import Changes
from musterd.config.secrets import MASK
from musterd.config.toml_text import toml_text
from musterd.manager.log import event, event_of_list
from musterd.manager.reload.outcome import Taken
from musterd.store.words import cut

Fields: TypeAlias = dict[str, object]
Line: TypeAlias = tuple[int, str, Fields]

LINES_MAX = 200  # of one reload
VALUE_LENGTH_MAX = 200


def tell_taken(log: logging.Logger, taken: Taken, catalog: Catalog) -> None:
    """`catalog` is the one of now."""
    found = taken.changes
    lines = list(_lines(found, taken.kinds))
    for level, phrase, fields in lines[:LINES_MAX]:
        event_of_list(log, level, phrase, **fields)
    for kind in catalog.values():
        if kind.broken is not None:
            event_of_list(log, logging.WARNING, "kind broken", kind=kind.name, message=kind.broken)
    more = {"lines_left_out": len(lines) - LINES_MAX} if len(lines) > LINES_MAX else {}
    told = {"added": found.added, "removed": found.removed, "moved": found.moved}
    told["changed"] = found.live
    listed = {name: _some(names) for name, names in told.items() if names}
    event(
        log, logging.INFO, "reloaded", generation=taken.generation, result=taken.result,
        kinds=len(catalog), **listed, **more,
    )  # fmt: skip


def _lines(found: Changes, kinds: Named) -> Iterator[Line]:
    for one in found.keys:
        if one.when == "restart":
            yield logging.WARNING, "needs a restart", _fields(one)
        else:
            yield logging.INFO, "setting changed", _fields(one) | {"applies": one.when}
    yield from _of_named("kind", kinds)
    yield from _of_named("schedule", found.schedules)


def _of_named(what: str, named: Named) -> Iterator[Line]:
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
    """As TOML, cut to what a line bears; `-` where nothing stood."""
    if value is None or value == MASK:
        return "-" if value is None else MASK
    return cut(toml_text(value), VALUE_LENGTH_MAX)


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - LINES_MAX
    return ",".join(names[:LINES_MAX]) + (f",... and {more} more" if more > 0 else "")
