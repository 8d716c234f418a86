"""Kinds of work: what each does, what waits and runs of it, and where it cannot run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from musterd.catalog.kinds import Catalog
from musterd.store.nodes import NodeRecord
from musterd.store.words import cut, plural
from musterd.web.kind_words import behaviour_words, retry_words
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Frame, Html, View, el, join, link
from musterd.web.pages.pictures import KindRow, kinds_table

KINDS_SHOWN = 100
REASON_WIDTH = 160


@frozen
class KindsData:
    """None = the store does not answer."""

    catalog: Catalog
    rows: Sequence[KindRow] | None
    nodes: Sequence[NodeRecord] | None


def kinds(frame: Frame, data: KindsData) -> View:
    return ui.live_view(frame, "kinds", parts_of(frame, data))


def parts_of(frame: Frame, data: KindsData) -> Mapping[str, Html]:
    return {
        "kinds": ui.card("Now and lately", kinds_table(frame, data.rows)),
        "catalog": ui.card("Catalog of this node", _catalog(frame, data)),
    }


def _catalog(frame: Frame, data: KindsData) -> Html:
    names = sorted(data.catalog)
    broken = broken_by_kind(data.nodes or ())
    columns: ui.Columns[str] = {
        "kind": lambda one: link(
            frame.at("/ui/jobs", kind=one), ui.name_text(one), data_key=f"of-{one}"
        ),
        "does": lambda one: el("span", behaviour_words(data.catalog[one]), class_="note"),
        "failures are retried": lambda one: retry_words(data.catalog[one]),
        "at once, at most": lambda one: ui.number(data.catalog[one].max_running),
        "time limit": lambda one: _limit(data.catalog[one].time_limit_seconds),
        "runs": lambda one: _broken(broken.get(one, ())),
    }
    caption = f"{plural(len(names), 'kind')}, by name"
    none = "This node has no kinds: name your catalog files in [catalog] paths."
    return ui.table(caption, names, columns, most=KINDS_SHOWN, what="kind", empty=none)


def _limit(seconds: float | None) -> str:
    return ui.NOTHING if seconds is None else f"{seconds:g} s"


def broken_by_kind(nodes: Sequence[NodeRecord]) -> Mapping[str, Sequence[tuple[str, str]]]:
    """By kind, the live nodes on which it cannot run, and why."""
    found: dict[str, list[tuple[str, str]]] = {}
    for node in nodes:
        for kind, known in node.named.items() if node.is_live else ():
            if known.broken is not None:
                found.setdefault(kind, []).append((node.name, known.broken))
    return found


def _broken(where: Sequence[tuple[str, str]]) -> Html:
    if not where:
        return ui.badge("yes", "well")
    node, reason = where[0]
    more = f" and {plural(len(where) - 1, 'more node')}" if len(where) > 1 else ""
    words = f" {cut(node, ui.NAME_WIDTH)}{more}: {cut(reason, REASON_WIDTH)}"
    return join(ui.badge("broken", "ill"), el("span", words, class_="note"))
