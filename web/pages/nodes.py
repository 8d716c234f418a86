"""The nodes of the store, where they disagree, and which has which duty. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from musterd.manager.node.status import WorkerView
from musterd.store.duties import DutyRecord
from musterd.store.nodes import NodeRecord, warnings
from musterd.store.words import cut
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Content, Frame, Html, View, el, join
from musterd.web.pages.overview import NO_ANSWER, worker_columns

WARNING_WIDTH = 500
ERROR_WIDTH = 300


@frozen
class NodesData:
    """None = the store does not answer."""

    nodes: Sequence[NodeRecord] | None
    duties: Sequence[DutyRecord] | None
    workers: Sequence[WorkerView]


def nodes(frame: Frame, data: NodesData) -> View:
    return ui.live_view(frame, "nodes", parts_of(frame, data), heading="Nodes and duties")


def parts_of(frame: Frame, data: NodesData) -> Mapping[str, Html]:
    return {
        "nodes": ui.card("Nodes", _nodes(frame, data.nodes)),
        "duties": ui.card("Duties", _duties(data.duties)),
        "crew": ui.card("Workers of this node", _crew(frame, data.workers)),
    }


def _nodes(frame: Frame, found: Sequence[NodeRecord] | None) -> Html:
    if found is None:
        return ui.notice(NO_ANSWER, "ill")
    warned = [ui.notice(cut(text, WARNING_WIDTH), "warn") for text in warnings(found)]
    caption, none = "Nodes of this store, the oldest first", "no node has reported yet"
    return join(warned, ui.table(caption, found, _columns(frame), what="node", empty=none))


def _columns(frame: Frame) -> ui.Columns[NodeRecord]:
    own = el("span", " (this one)", class_="dim")
    return {
        "node": lambda one: (ui.name_text(one.name), own if one.name == frame.node else None),
        "state": lambda one: ui.badge(one.phase) if one.is_live else ui.badge("silent", "ill"),
        "last seen": lambda one: ui.ago_text(one.silent_seconds),
        "busy": lambda one: ui.number(one.busy),
        "workers": lambda one: ui.number(one.crew + one.retiring),
        "at most": lambda one: ui.number(one.max_count),
        "load": lambda one: ui.NOTHING if one.load is None else f"{one.load:.2f}",
        "version": lambda one: ui.name_text(one.version),
        "configuration": _configuration,
        "started": lambda one: ui.moment(one.started_at),
    }


def _configuration(node: NodeRecord) -> str:
    generation = "" if node.config_generation is None else f"{node.config_generation}, "
    return f"{generation}{(node.config_hash or ui.NOTHING)[:12]}"


def _duties(found: Sequence[DutyRecord] | None) -> Content:
    if found is None:
        return ui.notice(NO_ANSWER, "ill")
    caption = "Duties, and the node that has each"
    return ui.table(caption, found, DUTIES, empty="no duty has been taken yet")


DUTIES: ui.Columns[DutyRecord] = {
    "duty": lambda one: one.duty,
    "node": lambda one: ui.badge("nobody", "warn") if one.node is None else ui.name_text(one.node),
    "for": lambda one: "" if one.held_seconds is None else ui.lasting_text(one.held_seconds),
    "last run": lambda one: ui.moment(one.last_run_at, one.now),
    "running": lambda one: (
        "" if one.running_seconds is None else ui.lasting_text(one.running_seconds)
    ),
    "runs": lambda one: ui.number(one.runs),
    "items": lambda one: ui.number(one.items),
    "errors": lambda one: ui.number(one.errors),
    "last error": lambda one: el("span", cut(one.last_error or "", ERROR_WIDTH), class_="note"),
}


def _crew(frame: Frame, workers: Sequence[WorkerView]) -> Html:
    order = sorted(workers, key=lambda one: (one.job_id is None, -one.busy_seconds, one.worker))
    caption = "Workers, those with a job first"
    return ui.table(
        caption, order, worker_columns(frame), what="worker", empty="no worker is hired"
    )
