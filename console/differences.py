"""How the difference between two configurations is shown to people, from the object that programs
get.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from musterd.config.secrets import MASK
from musterd.config.toml_text import toml_text
from musterd.store.words import cut, one_line, table

VALUE_WIDTH = 40
APPLIES = {
    "at once": "at once",
    "next claim": "at the next claim",
    "next job": "for jobs that start from now on",
    "restart": "needs a restart",
}


def lines_of(found: dict[str, Any]) -> list[str]:
    """One line a thing; none where nothing is different."""
    rows = [_row(one["key"], one) for one in found["changed"]]
    for what in ("kinds", "schedules"):
        rows += _named_rows(what, found[what])
    lines = table(("key", "from", "to", "applies"), rows) if rows else []
    return [*lines, *_tenants(found["tenants"])]


def _row(key: str, one: dict[str, Any]) -> tuple[str, str, str, str]:
    return (key, _text(one["from"]), _text(one["to"]), APPLIES[one["applies"]])


def _named_rows(what: str, found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    when = APPLIES["next job" if what == "kinds" else "at once"]
    rows = [(f"{what}.{name}", "-", "added", when) for name in found["added"]]
    for one in found["changed"]:
        rows += [_row(f"{what}.{one['name']}.{key['key']}", key) for key in one["keys"]]
    return rows + [(f"{what}.{name}", "-", "removed", when) for name in found["removed"]]


def _tenants(found: dict[str, list[str]]) -> Iterator[str]:
    said = {
        "added": "is served",
        "removed": "is left when its running jobs have ended",
        "moved": "is served at its new place when its running jobs have ended",
    }
    for how, what in said.items():
        for name in found[how]:
            yield f"tenant {name} {how}: it {what}"


def _text(value: object) -> str:
    if value is None or value == MASK:
        return "-" if value is None else MASK
    return cut(one_line(toml_text(value)), VALUE_WIDTH)
