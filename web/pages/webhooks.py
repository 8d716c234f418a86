"""Webhooks: the latest messages, and what became of each. Pure."""

from __future__ import annotations

from musterd.config.secrets import mask_url
from musterd.store.outbox import MessageRecord
from musterd.store.words import cut
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Frame, Html, el
from musterd.web.pages.listing import Listing
from musterd.web.pages.overview import job_link

SHOWN = 100
ERROR_WIDTH = 200
MOODS = {"delivered": "well", "failed": "ill", "waiting": "warn"}


def _columns(frame: Frame) -> ui.Columns[MessageRecord]:
    columns: ui.Columns[MessageRecord] = {
        "message": lambda one: ui.number(one.id),
        "state": lambda one: ui.badge(one.state, MOODS.get(one.state, "")),
        "job": lambda one: job_link(frame, one.job_id),
        "type": lambda one: one.type,
        "to": lambda one: ui.name_text(mask_url(one.url)),
        "tries": lambda one: ui.number(one.tries),
        "made": lambda one: ui.moment(one.created_at),
        "next try": lambda one: ui.moment(one.due_at) if one.state == "waiting" else ui.NOTHING,
        "answer": _answer,
    }
    acts: ui.Columns[MessageRecord] = {"act": lambda one: _resend(frame, one)}
    return {**columns, **acts} if frame.may_act else columns


def _answer(one: MessageRecord) -> Html | str:
    status = "" if one.status is None else str(one.status)
    words = " ".join(part for part in (status, cut(one.error or "", ERROR_WIDTH)) if part)
    return el("span", words, class_="note") if words else ui.NOTHING


def _resend(frame: Frame, one: MessageRecord) -> Html | str:
    if one.state == "waiting":
        return ""
    return el(
        "form", frame.hidden_tenant(), ui.hidden("id", one.id),
        ui.button("Send again", data_key=f"resend-{one.id}"),
        method="post", action="/ui/webhooks/resend",
    )  # fmt: skip


WEBHOOKS = Listing(
    "webhooks",
    caption=f"Messages, the newest first; {SHOWN} at most",
    columns=_columns,
    most=SHOWN,
    what="message",
    empty="No message has been made: name a URL in a job, a kind or [webhooks].",
)
