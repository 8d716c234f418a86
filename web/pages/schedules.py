"""Schedules: when jobs are wanted again and again, what became of the last slots. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from musterd.config.schedules import Schedule, as_written
from musterd.manager.duties.schedules import upcoming
from musterd.store.schedules import ScheduleRecord
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Frame, Html, View, el, join, link
from musterd.web.pages.overview import NO_ANSWER

NEXT_SHOWN = 3
SHOWN = 100
EMPTY = "There are none: add [schedules.NAME] to the configuration."


@frozen
class SchedulesData:
    """`records` None = the store does not answer."""

    own: Mapping[str, Schedule]
    records: Sequence[ScheduleRecord] | None
    said: str | None = None  # what has just been done


def schedules(frame: Frame, data: SchedulesData) -> View:
    said = ui.notice(data.said) if data.said else None
    content = (el("h1", "Schedules"), said, ui.regions(parts_of(frame, data)))
    live = frame.at("/ui/live", view="schedules")
    return View("schedules", "Schedules", content, live=live)


def parts_of(frame: Frame, data: SchedulesData) -> Mapping[str, Html]:
    return {"schedules": el("div", _listed(frame, data), class_="card")}


def _listed(frame: Frame, data: SchedulesData) -> Html:
    if data.records is None:
        return ui.notice(NO_ANSWER, "ill")
    columns: ui.Columns[ScheduleRecord] = {
        "schedule": lambda one: ui.name_text(one.name),
        "state": lambda one: _state(data.own[one.name], one),
        "kind": lambda one: ui.name_text(data.own[one.name].kind),
        "when": lambda one: ui.name_text(when_words(data.own[one.name])),
        "next": lambda one: _next(data.own[one.name], one),
        "last slot's job": lambda one: _last(frame, one),
        "fired": lambda one: ui.number(one.fired),
        "skipped": lambda one: ui.number(one.skipped),
        "missed": lambda one: ui.number(one.missed),
    }
    acts: ui.Columns[ScheduleRecord] = {"act": lambda one: _acts(frame, one)}
    columns = {**columns, **acts} if frame.may_act else columns
    known = [one for one in data.records if one.name in data.own]
    return ui.table("Schedules of this tenant", known, columns, what="schedule", empty=EMPTY)


def when_words(schedule: Schedule) -> str:
    written = as_written(schedule)
    if "cron" not in written:
        return f"every {written['every_seconds']} s"
    zone = "" if written["timezone"] == "UTC" else f" {written['timezone']}"
    return f"{written['cron']}{zone}"


def _state(schedule: Schedule, record: ScheduleRecord) -> Html:
    if not schedule.enabled:
        return ui.badge("disabled")
    return ui.badge("paused") if record.paused_at is not None else ui.badge("on", "well")


def _next(schedule: Schedule, record: ScheduleRecord) -> Html | str:
    if not schedule.enabled or record.paused_at is not None:
        return ui.NOTHING
    slots = upcoming(schedule.rhythm, max(record.last_slot, record.now), NEXT_SHOWN)
    return el("ul", [el("li", ui.moment(slot)) for slot in slots], class_="plain")


def _last(frame: Frame, record: ScheduleRecord) -> Html | str:
    if record.last_job_id is None:
        return ui.NOTHING
    number = str(record.last_job_id)
    badge = None if record.last_job_state is None else ui.badge(record.last_job_state)
    if badge is None:
        return join(number, " deleted")
    to = link(frame.at(f"/ui/jobs/{number}"), number, data_key=f"last-{record.name}")
    return join(to, " ", badge)


def _acts(frame: Frame, record: ScheduleRecord) -> Html:
    is_paused = record.paused_at is not None
    act, label = ("resume", "Resume") if is_paused else ("pause", "Pause")
    return el(
        "form", frame.hidden_tenant(), ui.hidden("schedule", record.name),
        ui.button(label, name="act", value=act, data_key=f"{act}-{record.name}"),
        None if is_paused else ui.button("Run now", name="act", value="run",
            data_key=f"run-{record.name}"),
        method="post", action="/ui/schedules/act", class_="acts",
    )  # fmt: skip
