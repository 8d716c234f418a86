"""The nodes of the store, what they do not agree on, and who does which duty for all. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from musterd.manager.node.status import WorkerView
from musterd.store.duties import DutyRecord
from musterd.store.nodes import NodeRecord, warnings
from musterd.store.words import cut
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Content, Frame, Html, View, el, join
from musterd.web.pages.overview import NO_ANSWER, job_link

NODES_SHOWN = 100
WORKERS_SHOWN = 100
WARNING_WIDTH = 500
ERROR_WIDTH = 300


@frozen
class NodesData:
    """None = the store does not answer."""

    nodes: Sequence[NodeRecord] | None
    duties: Sequence[DutyRecord] | None
    workers: Sequence[WorkerView]


PARTS = ("nodes", "duties", "crew")


def nodes(frame: Frame, data: NodesData) -> View:
    content = (el("h1", "Nodes and duties"), ui.regions(parts_of(frame, data), *PARTS))
    return View("nodes", "Nodes", content, live=frame.at("/ui/live", view="nodes"))


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
    rows = [_node(frame, node) for node in found[:NODES_SHOWN]]
    heads = (
        "node", "state", "last seen", "busy", "workers", "at most", "load", "version",
        "configuration", "started (UTC)",
    )  # fmt: skip
    if not rows:
        return join(warned, el("p", "no node has reported yet", class_="dim"))
    more = ui.left_out(len(rows), len(found), "node")
    return join(warned, ui.table("Nodes of this store, the oldest first", heads, rows, more))


def _node(frame: Frame, node: NodeRecord) -> Html:
    own = el("span", " (this one)", class_="dim") if node.name == frame.node else None
    state = ui.badge(node.phase) if node.is_live else ui.badge("silent", "ill")
    generation = "" if node.config_generation is None else f"{node.config_generation}, "
    return ui.row(
        (ui.name_text(node.name), own),
        state,
        ui.ago_text(node.silent_seconds),
        ui.number(node.busy),
        ui.number(node.crew + node.retiring),
        ui.number(node.max_count),
        ui.NOTHING if node.load is None else f"{node.load:.2f}",
        ui.name_text(node.version),
        f"{generation}{(node.config_hash or ui.NOTHING)[:12]}",
        ui.moment(node.started_at),
    )


def _duties(found: Sequence[DutyRecord] | None) -> Content:
    if found is None:
        return ui.notice(NO_ANSWER, "ill")
    if not found:
        return el("p", "no duty has been taken yet", class_="dim")
    rows = [_duty(one) for one in found]
    heads = ("duty", "node", "for", "last run", "runs", "items", "errors", "last error")
    return ui.table("Duties, and the node that has each", heads, rows)


def _duty(one: DutyRecord) -> Html:
    held = "" if one.held_seconds is None else ui.lasting_text(one.held_seconds)
    return ui.row(
        one.duty,
        ui.badge("nobody", "warn") if one.node is None else ui.name_text(one.node),
        held,
        ui.moment(one.last_run_at, one.now),
        ui.number(one.runs),
        ui.number(one.items),
        ui.number(one.errors),
        el("span", cut(one.last_error or "", ERROR_WIDTH), class_="note"),
    )


def _crew(frame: Frame, workers: Sequence[WorkerView]) -> Html:
    order = sorted(workers, key=lambda one: (one.job_id is None, -one.busy_seconds, one.worker))
    rows = [
        ui.row(
            str(one.worker),
            ui.badge(one.state),
            None if one.job_id is None else job_link(frame, one.job_id),
            ui.name_text(one.kind or ""),
            "" if one.job_id is None else ui.lasting_text(one.busy_seconds),
        )
        for one in order[:WORKERS_SHOWN]
    ]
    if not rows:
        return el("p", "no worker is hired", class_="dim")
    heads = ("worker", "state", "job", "kind", "for")
    more = ui.left_out(len(rows), len(workers), "worker")
    return ui.table("Workers, those with a job first", heads, rows, more)
