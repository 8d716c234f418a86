"""What fails: the latest failed jobs, grouped by kind and error. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from attrs import evolve, frozen

from musterd.store.overview import OverviewJob
from musterd.store.report import error_line
from musterd.store.words import cut, plural
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Frame, Html, View, el, link
from musterd.web.pages.overview import NO_ANSWER, job_link

LOOKED = 500  # failed jobs, the latest
GROUPS_SHOWN = 50
MESSAGE_WIDTH = 200


@frozen
class Group:
    """Failed jobs of one kind with one type of error; the example is the latest of them."""

    kind: str
    error_type: str
    count: int
    first_at: datetime | None
    last_at: datetime | None
    example_id: int
    message: str


def groups_of(jobs: Sequence[OverviewJob]) -> Sequence[Group]:
    """The largest first; of jobs the newest first."""
    found: dict[tuple[str, str], Group] = {}
    for one in jobs:
        key = one.kind, error_type_of(one.error)
        known = found.get(key)
        if known is None:
            line = error_line(one.error) or one.reason or ""
            at = one.finished_at
            found[key] = Group(*key, 1, at, at, one.id, line)
        else:
            found[key] = evolve(known, count=known.count + 1, first_at=one.finished_at)
    return sorted(found.values(), key=lambda one: (-one.count, one.kind, one.error_type))


def error_type_of(error: str | None) -> str:
    """Of the text of an error, which may have been cut."""
    if error is None:
        return ""
    try:
        found: object = json.loads(error)
    except ValueError:
        return ""
    if not isinstance(found, dict):
        return ""
    return str(cast("dict[str, object]", found).get("type") or "")


def failures(frame: Frame, jobs: Sequence[OverviewJob] | None) -> View:
    """None = the store does not answer."""
    return ui.live_view(frame, "failures", parts_of(frame, jobs))


def parts_of(frame: Frame, jobs: Sequence[OverviewJob] | None) -> Mapping[str, Html]:
    return {"failures": el("div", _listed(frame, jobs), class_="card")}


def _listed(frame: Frame, jobs: Sequence[OverviewJob] | None) -> Html:
    if jobs is None:
        return ui.notice(NO_ANSWER, "ill")
    looked = f"the latest {LOOKED}" if len(jobs) >= LOOKED else plural(len(jobs), "job")
    caption = f"Failed jobs by kind and error, of {looked}"
    return ui.table(
        caption, groups_of(jobs), _columns(frame), most=GROUPS_SHOWN, what="group",
        empty="no job has failed",
    )  # fmt: skip


def _columns(frame: Frame) -> ui.Columns[Group]:
    return {
        "jobs": lambda one: link(
            frame.at("/ui/jobs", state="failed", kind=one.kind),
            ui.number(one.count),
            data_key=f"{one.kind}-{one.error_type}",
        ),
        "kind": lambda one: ui.name_text(one.kind),
        "error": lambda one: ui.name_text(one.error_type or ui.NOTHING),
        "first": lambda one: ui.moment(one.first_at),
        "last": lambda one: ui.moment(one.last_at),
        "latest job": lambda one: job_link(frame, one.example_id),
        "message": lambda one: el("span", cut(one.message, MESSAGE_WIDTH), class_="note"),
    }
