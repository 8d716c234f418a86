"""The first view: whether all is well, what waits, the crew and why it has its size. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from attrs import frozen

from musterd.manager.node.status import Decision, NodeStatus, TenantStatus, WorkerView, verdict
from musterd.store.lifecycle import JobState
from musterd.store.queue import Counts
from musterd.store.words import count_text, duration_text, plural
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Frame, Html, View, el, join, link
from musterd.web.pages.once import drawn_once
from musterd.web.pages.pictures import (
    RANGE,
    KindRow,
    ended_chart,
    kinds_table,
    queue_chart,
    ranges,
    times_chart,
)
from musterd.web.pages.scaling import act_words, beside, changes_crew, reason_words
from musterd.web.picture import Picture
from musterd.web.samples import SAMPLE_SECONDS, Trend

WORKERS_SHOWN = 20
TENANTS_SHOWN = 20
DECISIONS_SHOWN, DECISIONS_LOOKED = 6, 200
WHOLE_FROM = 100  # rates from here on have no fractions
NO_ANSWER = "the store does not answer"
STORES = {"postgresql": ("PostgreSQL", "postgresql "), "sqlite": ("SQLite", "sqlite:///")}


@frozen
class OverviewData:
    """`counts` is None if the store does not answer."""

    status: NodeStatus
    crew: TenantStatus
    counts: Counts | None
    workers: Sequence[WorkerView]
    decisions: Sequence[Decision]
    trend: Trend
    tenants: Sequence[TenantStatus] = ()
    remarks: Sequence[str] = ()
    chosen: str = RANGE  # of the charts
    picture: Picture | None = None  # None = the store does not answer
    kinds: Sequence[KindRow] | None = None  # likewise


TILES = {
    "depth": "Due now",
    "oldest": "Longest wait",
    "arriving": "Jobs in",
    "leaving": "Jobs out",
    "crew": "Workers",
}


def overview(frame: Frame, data: OverviewData) -> View:
    parts = parts_of(frame, data)
    tiles = [
        el(
            "section",
            el("h2", title),
            ui.regions(parts, f"{name}-now", f"{name}-trend"),
            class_=f"tile {name}",
        )
        for name, title in TILES.items()
    ]
    content = (
        el("h1", "Overview"),
        # Screen readers announce this when it changes; the rest only when visited.
        el("div", parts["mood"], id="mood", class_="unseen", role="status"),
        ui.regions(parts, "verdict", "queue", "remarks"),
        el(
            "div",
            ui.card(
                "Queue and crew",
                ranges(frame, "/", data.chosen),
                ui.regions(parts, "chart-queue"),
            ),
            ui.card("Why this crew size", ui.regions(parts, "decisions")),
            class_="first",
        ),
        el("div", tiles, class_="tiles"),
        ui.card("Kinds", ui.regions(parts, "kinds")),
        el(
            "div",
            ui.card("Jobs that ended", ui.regions(parts, "chart-ended")),
            ui.card("Wait and run", ui.regions(parts, "chart-times")),
            class_="pair",
        ),
        el(
            "div",
            ui.card("Jobs", ui.regions(parts, "states")),
            ui.card("At work on this node", ui.regions(parts, "workers")),
            class_="pair",
        ),
        ui.card("Tenants", ui.regions(parts, "tenants-list")) if len(data.tenants) > 1 else None,
    )
    live = frame.at("/ui/live", view="overview", range=data.chosen)
    return View("overview", "Overview", content, live=live)


def parts_of(frame: Frame, data: OverviewData) -> Mapping[str, Html]:
    """The parts that may change, by element id."""
    healthy, words = verdict(data.status)
    if healthy and data.counts is None:
        healthy, words = False, NO_ANSWER
    mood, state = ("well", "healthy") if healthy else ("ill", "not healthy")
    store = _store_words(data.status)
    return {
        "mood": join(state),
        "verdict": join(
            el("p", f"{state}: {words}", class_=f"verdict {mood}"), el("p", store, class_="dim")
        ),
        "queue": _queue(frame, data.counts),
        "remarks": _remarks(data.remarks),
        **_tiles(data),
        "chart-queue": queue_chart(data.picture, data.chosen),
        "chart-ended": ended_chart(data.picture, data.chosen),
        "chart-times": times_chart(data.picture, data.chosen),
        "kinds": kinds_table(frame, data.kinds),
        "states": _states(frame, data.counts),
        "workers": _workers(frame, data.workers),
        "tenants-list": _tenants(data.tenants),
        "decisions": _decisions(frame, data.decisions),
    }


def _store_words(status: NodeStatus) -> str:
    """`PostgreSQL at 127.0.0.1:5432/shop, schema musterd`, or `SQLite at /path/to/musterd.db`."""
    name, prefix = STORES.get(status.engine, (status.engine, ""))
    return f"{name} at {status.store.removeprefix(prefix)}"


def _queue(frame: Frame, counts: Counts | None) -> Html:
    if counts is None:
        return el("p", NO_ANSWER, class_="notice ill")
    if counts.paused_at is None:
        return _switch(frame, "pause", "Pause the queue") if frame.may_act else join()
    since = counts.paused_at.astimezone(UTC)
    by = f"by {counts.paused_by or 'somebody'}, {since:%Y-%m-%d %H:%M:%S} UTC"
    resume = _switch(frame, "resume", "Resume the queue") if frame.may_act else None
    return el(
        "div", el("p", el("strong", "The queue is paused "), by), resume, class_="notice warn"
    )


def _remarks(remarks: Sequence[str]) -> Html:
    """With the commands that help; that the queue is paused is said by a notice of its own."""
    shown = [_remark(one) for one in remarks if not one.startswith("PAUSED")]
    return el("ul", shown, class_="notice warn plain") if shown else join()


def _remark(remark: str) -> Html:
    code, _, said = remark.partition(" ")
    parts = said.strip().split("`")  # each second one is a command
    words = [el("code", part) if place % 2 else join(part) for place, part in enumerate(parts)]
    return el("li", el("strong", code), " ", words)


def _switch(frame: Frame, action: str, label: str) -> Html:
    return el(
        "form", frame.hidden_tenant(), ui.button(label, data_key=f"queue-{action}"),
        method="post", action=f"/ui/queue/{action}", class_="switch",
    )  # fmt: skip


@drawn_once
def _trends(trend: Trend) -> Mapping[str, Html]:
    return {
        "depth-trend": _drawn(trend.depth, "jobs waiting", count_text),
        "oldest-trend": _drawn(trend.oldest, "longest wait", duration_text),
        "arriving-trend": _drawn(trend.arriving, "jobs in per second", _rate),
        "leaving-trend": _drawn(trend.leaving, "jobs out per second", _rate),
        "crew-trend": _drawn(trend.busy, "busy workers", count_text, trend.desired),
    }


def _tiles(data: OverviewData) -> Mapping[str, Html]:
    counts, trend = data.counts, data.trend
    come, gone = trend.rates
    oldest = None if counts is None else duration_text(counts.oldest_due_seconds)
    return {
        "depth-now": _now(ui.number(None if counts is None else counts.due), "no worker yet"),
        "oldest-now": _now(oldest if counts and counts.due else ui.NOTHING, "since its due time"),
        "arriving-now": _now(_rate(come), "per second, enqueued"),
        "leaving-now": _now(_rate(gone), "per second, finished"),
        "crew-now": _crew(data),
        **_trends(trend),
    }


def _now(value: str | None, unit: str) -> Html:
    return join(el("p", value or ui.NOTHING, class_="now"), el("p", unit, class_="dim"))


def _crew(data: OverviewData) -> Html:
    crew, last = data.crew, data.decisions[-1] if data.decisions else None
    wanted = "" if last is None else f", wants {count_text(last.desired)}"
    retiring = f", {count_text(crew.retiring)} leaving" if crew.retiring else ""
    return join(
        el("p", f"{ui.number(crew.busy)} / {ui.number(crew.size)}", class_="now"),
        el("p", f"busy{retiring}{wanted}, at most {ui.number(crew.max_count)}", class_="dim"),
    )


def _drawn(values: Series, what: str, words: Callable[[Any], str], second: Series = ()) -> Html:
    known = [one for one in values if one is not None]
    if not known:
        return sparkline((), what)
    span = duration_text(max(1.0, SAMPLE_SECONDS * (len(values) - 1)))
    low, high = words(min(known)), words(max(known))
    return sparkline(values, f"{what} in the last {span}: {low} to {high}", second)


def _rate(per_second: float | None) -> str:
    if per_second is None:
        return ui.NOTHING
    return f"{per_second:,.0f}" if per_second >= WHOLE_FROM else f"{per_second:.3g}"


def _states(frame: Frame, counts: Counts | None) -> Html:
    if counts is None:
        return el("p", NO_ANSWER, class_="dim")
    total = sum(counts.by_state.values()) or 1
    columns: ui.Columns[JobState] = {
        "state": lambda one: link(
            frame.at("/ui/jobs", state=one.value), ui.badge(one.value), data_key=one.value
        ),
        "jobs": lambda one: el("span", ui.number(counts.by_state.get(one, 0)), class_="count"),
        "share": lambda one: _share(counts.by_state.get(one, 0) / total, one),
    }
    ever = f"{plural(counts.enqueued_total, 'job')} enqueued so far"
    return join(ui.table("Jobs by state", [*JobState], columns), el("p", ever, class_="dim"))


def _share(share: float, state: JobState) -> Html:
    percent = round(share * 100)
    shown = f"{percent} %" if percent or not share else "< 1 %"
    bar = el("rect", width=str(round(share * 100, 1)), height="6", class_=f"bar {state.value}")
    svg = el("svg", bar, viewBox="0 0 100 6", preserveAspectRatio="none", aria_hidden="true")
    return el("span", svg, el("span", shown, class_="dim"), class_="share")


def _workers(frame: Frame, workers: Sequence[WorkerView]) -> Html:
    busy = [worker for worker in workers if worker.job_id is not None]
    longest = sorted(busy, key=lambda worker: -worker.busy_seconds)
    columns = worker_columns(frame)
    return ui.table(
        "Busy workers, the longest first", longest,
        {head: columns[head] for head in ("worker", "job", "kind", "for", "state")},
        most=WORKERS_SHOWN, what="busy worker", empty="no worker is busy",
    )  # fmt: skip


def worker_columns(frame: Frame) -> ui.Columns[WorkerView]:
    return {
        "worker": lambda one: str(one.worker),
        "state": lambda one: ui.badge(one.state),
        "job": lambda one: None if one.job_id is None else job_link(frame, one.job_id),
        "kind": lambda one: ui.name_text(one.kind or ""),
        "for": lambda one: "" if one.job_id is None else ui.lasting_text(one.busy_seconds),
    }


def job_link(frame: Frame, job_id: int) -> Html:
    return link(frame.at(f"/ui/jobs/{job_id}"), str(job_id), data_key=f"job-{job_id}")


def _tenants(tenants: Sequence[TenantStatus]) -> Html:
    most = sorted(tenants, key=lambda one: (-(one.depth or 0), -one.busy, one.name))
    caption = "Tenants of this node, the fullest first"
    return ui.table(caption, most, TENANTS, most=TENANTS_SHOWN, what="tenant")


TENANTS: ui.Columns[TenantStatus] = {
    "tenant": lambda one: link(Frame("", "", tenant=one.name).at("/"), ui.name_text(one.name),
        data_key=f"tenant-{one.name}"),
    "due": lambda one: ui.number(one.depth) + ("" if one.depth_exact else "+"),
    "busy": lambda one: ui.number(one.busy),
    "workers": lambda one: f"{ui.number(one.size)} of {ui.number(one.max_count)}",
    "store": lambda one: ui.badge("away", "ill") if one.store_trouble
    else ui.badge("answers", "well"),
}  # fmt: skip


def _decisions(frame: Frame, decisions: Sequence[Decision]) -> Html:
    now = el("p", _sized(decisions[-1] if decisions else None), class_="reason")
    changes = (one for one in reversed(decisions[-DECISIONS_LOOKED:]) if changes_crew(one))
    items = [
        el("li", _clock(one.at), " ", el("strong", act_words(one)),
            f" ({one.size_before} → {one.desired})")
        for one in islice(changes, DECISIONS_SHOWN)
    ]  # fmt: skip
    listed = el("ol", items, class_="plain") if items else el("p", "no change lately", class_="dim")
    more = el("p", link(frame.at("/ui/scaling"), "All decisions"))
    return join(now, beside(decisions[-1] if decisions else None), listed, more)


def _sized(last: Decision | None) -> str:
    if last is None:
        return reason_words(last)
    reason = reason_words(last)
    return f"{plural(last.desired, 'worker')} wanted. {reason[:1].upper()}{reason[1:]}."


def _clock(at: float) -> Html:
    moment = datetime.fromtimestamp(at, UTC)
    return ui.time_element(moment, f"{moment:%H:%M:%S}")


WIDTH, HEIGHT = 120, 32
TOP = 2  # so that a line at the top is not cut in half

Series = Sequence[float | None]


def sparkline(values: Series, about: str, second: Series = ()) -> Html:
    """A line above a filled area, from zero, with gaps where values are unknown. `about` is read
    out instead. `second` is dashed, on the same scale.
    """
    known = [one for one in (*values, *second) if one is not None]
    if not any(one is not None for one in values):
        return el("p", "no samples yet", class_="spark none")
    high = max(*known, 1e-9)
    lines = [_points(part, high) for part in _stretches(values)]
    area = "".join(f"M{line[0][0]:g} {HEIGHT}{_lines_to(line)}V{HEIGHT}Z" for line in lines)
    drawn = [el("path", d=area, class_="area"), el("path", d=_strokes(lines), class_="line")]
    if second:
        others = [_points(part, high) for part in _stretches(second)]
        drawn.append(el("path", d=_strokes(others), class_="line second"))
    return el(
        "svg", el("title", about), drawn, class_="spark", viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none", role="img",
    )  # fmt: skip


Points = Sequence[tuple[float, float]]


def _stretches(values: Series) -> Iterator[list[tuple[float, float]]]:
    """Runs of known values: place from 0 to 1, and value."""
    last = max(len(values) - 1, 1)
    part: list[tuple[float, float]] = []
    for place, value in enumerate(values):
        if value is not None:
            part.append((place / last, value))
        elif part:
            yield part
            part = []
    if part:
        yield part


def _points(part: Points, high: float) -> Points:
    return [
        (round(place * WIDTH, 1), round(HEIGHT - value / high * (HEIGHT - TOP), 1))
        for place, value in part
    ]


def _strokes(lines: Sequence[Points]) -> str:
    return "".join(f"M{line[0][0]:g} {line[0][1]:g}{_lines_to(line[1:] or line)}" for line in lines)


def _lines_to(line: Points) -> str:
    return "".join(f"L{x:g} {y:g}" for x, y in line)
