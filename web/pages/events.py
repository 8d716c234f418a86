"""The latest events. Pure."""

from __future__ import annotations

import json

from musterd.store.events import Event
from musterd.store.words import cut
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Frame, Html, el
from musterd.web.pages.listing import Listing
from musterd.web.pages.overview import job_link

SHOWN = 100
DATA_WIDTH = 200
MOODS = {
    "succeeded": "well", "failed": "ill", "webhook_failed": "ill", "retrying": "warn",
    "requeued": "warn", "paused": "paused", "started": "running",
}  # fmt: skip


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


EVENTS = Listing(
    "events",
    caption=f"Events, the newest first; {SHOWN} at most",
    columns=_columns,
    most=SHOWN,
    what="event",
    empty="Nothing has happened, or events are no longer kept.",
)
