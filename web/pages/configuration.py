"""The configuration in effect: each setting, whether it is as shipped, and when a change of it
applies. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import attrs
from attrs import frozen

from musterd.config.settings import sections
from musterd.config.toml_text import toml_text
from musterd.store.words import cut
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Html, View, el, join

VALUE_WIDTH = 200
TABLES_MAX = 100


class Setting(NamedTuple):
    key: str
    value: str
    shipped: str | None  # None = it has none
    applies: str
    what: str


@frozen
class ConfigurationData:
    """`tree` and `shipped` are those of `in_effect`, secrets masked."""

    tree: Mapping[str, Mapping[str, object]]
    shipped: Mapping[str, Mapping[str, object]]
    generation: int
    faults: Sequence[str] = ()  # of what was offered last


def configuration(data: ConfigurationData) -> View:
    content = (el("h1", "Configuration"), ui.regions(parts_of(data)))
    return View("configuration", "Configuration", content)


def parts_of(data: ConfigurationData) -> Mapping[str, Html]:
    changed = [one for one in settings_of(data) if one.value != one.shipped]
    caption = "What is not as shipped, on this node"
    first = ui.table(caption, changed, COLUMNS, what="setting", empty="all is as shipped")
    faults = [ui.notice(cut(one, VALUE_WIDTH), "ill") for one in data.faults]
    refused = el("p", "The configuration offered last was refused:") if faults else None
    about = f"Generation {ui.number(data.generation)}: one more with each reload."
    return {
        "changed": ui.card("Changed", el("p", about, class_="dim"), refused, faults, first),
        "all": ui.card("All settings", _all(data)),
    }


def settings_of(data: ConfigurationData) -> list[Setting]:
    """All, in the order of the shipped file; then tenants and schedules."""
    found: list[Setting] = []
    for table, values in _flat(data.tree):
        section, _, rest = table.partition(".")
        known = attrs.fields_dict(sections()[section]) if not rest and section in sections() else {}
        shipped: Mapping[str, object] = {} if rest else data.shipped.get(section, {})
        for name, value in values.items():
            metadata = known[name].metadata if name in known else {}
            before = toml_text(shipped[name]) if name in shipped else None
            applies, what = str(metadata.get("applies", "")), str(metadata.get("what", ""))
            found.append(Setting(f"{table}.{name}", toml_text(value), before, applies, what))
    return found


def _flat(tree: Mapping[str, Mapping[str, object]]) -> list[tuple[str, Mapping[str, object]]]:
    """Each table with the values of its own."""
    found: list[tuple[str, Mapping[str, object]]] = []
    for name, table in tree.items():
        inner = {
            key: cast("Mapping[str, object]", value)
            for key, value in table.items()
            if isinstance(value, Mapping)
        }
        found.append((name, {key: value for key, value in table.items() if key not in inner}))
        found += [(f"{name}.{key}", values) for key, values in _flat(inner)]
    return found


def _all(data: ConfigurationData) -> Html:
    by_table: dict[str, list[Setting]] = {}
    for one in settings_of(data):
        by_table.setdefault(one.key.rpartition(".")[0], []).append(one)
    shown = [
        el(
            "details",
            el("summary", el("code", f"[{table}]")),
            ui.table(f"Settings of [{table}]", found, COLUMNS, what="setting"),
            id=f"table-{table}",
        )
        for table, found in list(by_table.items())[:TABLES_MAX]
    ]
    more = ui.left_out(TABLES_MAX, len(by_table), "table")
    return join(shown, el("p", more, class_="dim") if more else None)


COLUMNS: ui.Columns[Setting] = {
    "setting": lambda one: el("code", ui.name_text(one.key), title=one.what or None),
    "value": lambda one: el("code", cut(one.value, VALUE_WIDTH), class_="note"),
    "as shipped": lambda one: (
        "yes" if one.value == one.shipped
        else el("code", cut(one.shipped or ui.NOTHING, VALUE_WIDTH), class_="note")
    ),
    "a change applies": lambda one: one.applies or ui.NOTHING,
}  # fmt: skip
