"""The latest events. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from attrs import frozen

from musterd.store.events import Event
from musterd.store.words import cut
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Frame, Html, View, el
from musterd.web.pages.overview import NO_ANSWER, job_link

SHOWN = 100
DATA_WIDTH = 200
MOODS = {
    "succeeded": "well", "failed": "ill", "webhook_failed": "ill", "retrying": "warn",
    "requeued": "warn", "paused": "paused", "started": "running",
}  # fmt: skip


@frozen
class EventsData:
    """The latest, the newest first; None = the store does not answer."""

    events: Sequence[Event] | None


def events(frame: Frame, data: EventsData) -> View:
    content = (el("h1", "Events"), ui.regions(parts_of(frame, data)))
    return View("events", "Events", content, live=frame.at("/ui/live", view="events"))


def parts_of(frame: Frame, data: EventsData) -> Mapping[str, Html]:
    return {"events": el("div", _listed(frame, data.events), class_="card")}


def _listed(frame: Frame, found: Sequence[Event] | None) -> Html:
    if found is None:
        return ui.notice(NO_ANSWER, "ill")
    caption = f"Events, the newest first; {SHOWN} at most"
    none = "Nothing has happened, or events are no longer kept."
    return ui.table(caption, found, _columns(frame), most=SHOWN, what="event", empty=none)


def _columns(frame: Frame) -> ui.Columns[Event]:
    return {
        "position": lambda one: str(one.id),
        "at": lambda one: ui.moment(one.at),
        "event": lambda one: ui.badge(one.type, MOODS.get(one.type.rpartition(".")[2], "")),
        "job": lambda one: "" if one.job_id is None else job_link(frame, one.job_id),
        "kind": lambda one: ui.name_text(one.kind or ""),
        "target": lambda one: ui.name_text(one.target or ""),
        "data": _data,
    }


def _data(one: Event) -> Html | str:
    words = ", ".join(f"{key} {_text(value)}" for key, value in one.data.items())
    return el("span", cut(words, DATA_WIDTH), class_="note") if words else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
