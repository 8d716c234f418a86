"""All dashboards, the first one first: each is read from the TOML file of its name.

A query names its choices by a word in place of the labels. Each node exports `@node` metrics of
itself, `@tenant` and `@kind` metrics too: they are filtered by instance and added up. One node
exports `@store` metrics for a whole store: they are not filtered by instance, because another node
may take over in a minute, and `max by (tenant)` stands around them, because for a moment two may
export them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli

from deploy.grafana.source.shape import Board, Limit, Panel, Query, Section

FOLDER = Path(__file__).resolve().parent
NAMES = ("overview", "scaling", "faults", "store", "tenants")
_NODE = 'job=~"$job", instance=~"$instance"'
CHOICES = {
    "@node": _NODE,
    "@tenant": f'{_NODE}, tenant=~"$tenant"',
    "@kind": f'{_NODE}, kind=~"$kind"',
    "@store": 'job=~"$job", tenant=~"$tenant"',
}
NUMBER_WIDTH = 3


def board(name: str) -> Board:
    table = tomli.loads((FOLDER / f"{name}.toml").read_text("utf-8"))
    sections = tuple(
        Section(one["title"], tuple(_panel(panel) for panel in one["panels"]))
        for one in table["sections"]
    )
    return Board(f"musterd-{name}", table["title"], table["says"], sections)


def _panel(table: dict[str, Any]) -> Panel:
    """A panel with one query and no legend writes `expr`; others write `queries`."""
    asked = table.pop("queries", None) or [{"expr": table.pop("expr")}]
    if table.get("look") == "number":
        table = {"width": NUMBER_WIDTH, **table}
    limits = tuple(Limit(value, colour) for value, colour in table.pop("limits", ()))
    queries = tuple(Query(_chosen(one["expr"]), one.get("legend", "")) for one in asked)
    return Panel(queries=queries, limits=limits, **table)


def _chosen(expr: str) -> str:
    for word, labels in CHOICES.items():
        expr = expr.replace(word, labels)
    return expr


BOARDS = tuple(board(name) for name in NAMES)
