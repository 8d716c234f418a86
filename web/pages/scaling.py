"""The supervisor's journal in words: what it observed, what it did, what limited it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from attrs import evolve, frozen

from musterd.manager.node.status import Decision, TenantStatus
from musterd.manager.scaling.journal import decision_of
from musterd.store.compared_hours import ComparedHour, HourFigures
from musterd.store.event_types import acts_text
from musterd.store.scaling_journal import JournalRun
from musterd.store.words import count_text, duration_text, plural
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Frame, Html, View, el, join
from musterd.web.pages.pictures import RANGE, queue_chart, ranges
from musterd.web.picture import Picture

LINES_SHOWN = 60
HOURS_SHOWN = 24


@frozen
class ScalingData:
    """`decisions`: the latest of this node. `runs`: of the journal of all nodes; None = the store
    did not answer. `hours`: that were compared with the model, the oldest first.
    """

    crew: TenantStatus
    decisions: Sequence[Decision]
    chosen: str = RANGE  # of the chart
    picture: Picture | None = None  # None = the store does not answer
    runs: Sequence[JournalRun] | None = None
    hours: Sequence[ComparedHour] = ()


def scaling(frame: Frame, data: ScalingData) -> View:
    parts = parts_of(frame, data)
    content = (
        el("h1", "Scaling"),
        ui.regions(parts, "now"),
        ui.card(
            "Queue and crew",
            ranges(frame, "/ui/scaling", data.chosen),
            ui.regions(parts, "chart-queue"),
        ),
        ui.regions(parts, "hours"),
        ui.regions(parts, "journal"),
    )
    live = frame.at("/ui/live", view="scaling", range=data.chosen)
    return View("scaling", "Scaling", content, live=live)


def parts_of(_frame: Frame, data: ScalingData) -> Mapping[str, Html]:
    return {
        "now": ui.card("Now", _now(data)),
        "chart-queue": queue_chart(data.picture, data.chosen),
        "hours": ui.card("Hours beside the model", _hours(data.hours)),
        "journal": ui.card("Journal", _journal(data)),
    }


def _now(data: ScalingData) -> Html:
    crew, last = data.crew, data.decisions[-1] if data.decisions else None
    bounds = f"at least {ui.number(crew.default_count)}, at most {ui.number(crew.max_count)}"
    wanted = "" if last is None else f", {ui.number(last.desired)} wanted"
    return join(
        el("p", el("strong", f"{plural(crew.size, 'worker')}{wanted}"), f", {bounds}."),
        el("p", f"{reason_words(last)}."),
        beside(last),
        _behind(last),
    )


def beside(last: Decision | None) -> Html | None:
    """What the candidate would have."""
    if last is None or last.candidate is None:
        return None
    desired, limit = last.candidate["desired"], last.candidate.get("limited_by")
    why = limit_words(None if limit is None else str(limit))
    words = f"The candidate would have {plural(int(str(desired)), 'worker')}"
    return el("p", f"{words}: {why}." if why else f"{words}.")


def _behind(last: Decision | None) -> Html | None:
    """Whether a promise is being broken."""
    slack = None if last is None else last.slack_seconds
    if slack is None or slack >= 0:
        return None
    late = f"a job has waited {duration_text(-slack)} longer than promised."
    return el("p", ui.badge("BEHIND", "limit"), f" {late}")


def _journal(data: ScalingData) -> Html:
    found = stretches(data.decisions) if data.runs is None else stretches_of(data.runs)
    whose = "of this node" if data.runs is None else "of all nodes"
    caption, none = f"Decisions {whose}, the newest first", "no decision has been made yet"
    columns = COLUMNS if len({one.node for one in found}) <= 1 else {**COLUMNS, **NODE_COLUMN}
    return ui.table(caption, found, columns, most=LINES_SHOWN, what="earlier line", empty=none)


def _hours(hours: Sequence[ComparedHour]) -> Html:
    caption, none = "How long jobs waited, the newest hour first", "no hour has been compared yet"
    columns = dict(HOUR_COLUMNS)
    if any(one.candidate is not None for one in hours):
        columns["candidate"] = lambda one: _figures(one.candidate)
    found = hours[::-1]
    return ui.table(caption, found, columns, most=HOURS_SHOWN, what="earlier hour", empty=none)


def _figures(found: HourFigures | None) -> Html | None:
    """Of how long jobs waited, and what the crew cost."""
    if found is None:
        return None
    half, most, longest = (
        duration_text(seconds)
        for seconds in (found.wait_p50_seconds, found.wait_p95_seconds, found.wait_max_seconds)
    )
    cost = found.worker_seconds
    words = f"p50 {half}, max {longest}"
    if cost is not None:
        words += f", {count_text(round(cost))} worker-seconds"
    return join(el("strong", f"p95 {most}"), el("span", f" {words}", class_="note"))


def _hour_error(one: ComparedHour) -> Html:
    if one.skipped is not None:
        return el("span", f"not compared: {one.skipped}", class_="dim")
    ratio = one.error_ratio
    return join("too few jobs to tell" if ratio is None else f"{ratio * 100:.0f} % off")


HOUR_COLUMNS: ui.Columns[ComparedHour] = {
    "from": lambda one: ui.moment(one.at),
    "jobs": lambda one: ui.number(one.attempts),
    "as it was": lambda one: _figures(one.was),
    "by the model": lambda one: _figures(one.present),
    "the model is": _hour_error,
}


def _limit(last: Decision) -> Html:
    limit = ui.badge(last.limited_by, "limit") if last.limited_by else None
    return el("span", limit, " ", limit_words(last.limited_by), class_="note")


def _done(one: Stretch) -> Html:
    words = act_words(one.last)
    if one.looks == 1:
        return el("strong", words) if words != "no change" else join(words)
    lasted = duration_text(max(0.0, one.last.at - one.first.at))
    return el("span", f"{words} for {lasted}, {plural(one.looks, 'decision')}", class_="dim")


COLUMNS: ui.Columns[Stretch] = {
    "at": lambda one: ui.moment(datetime.fromtimestamp(one.last.at, UTC)),
    "done": _done,
    "crew": lambda one: f"{ui.number(one.last.size_before)} → {ui.number(one.last.desired)}",
    "seen": lambda one: el("span", reason_words(one.last).partition(";")[0], class_="note"),
    "limited by": lambda one: _limit(one.last),
}
NODE_COLUMN: ui.Columns[Stretch] = {"node": lambda one: ui.name_text(one.node)}
LIMITS = {
    "min": "it keeps at least default_count workers",
    "max": "max_count allows no more",
    "shared": "other tenants use the rest of this node's workers",
    "max_running": "no more jobs may run at once",
    "up_cooldown": "it has just grown: the next step waits for its cooldown",
    "down_cooldown": "it has just shrunk: the next step waits for its cooldown",
    "stabilization": "it was needed a moment ago: it shrinks once that is past",
    "up_step": "a decision hires no more than up_step",
    "down_step": "a decision retires no more than down_step",
    "tolerance": "the change would be smaller than tolerance_percent of the crew",
    "busy": "workers leave when their jobs end",
    "machine_memory": "the machine has no memory for more",
    "machine_cpu": "the machine's processors are busy enough",
    "store": "claims take long: more workers would make the store slower",
    "hold": "scaling.mode is hold: it stays as it is",
    "shadow": "scaling.mode is shadow: this is decided, and not done",
    "no_observation": "the queue could not be observed: it stays as it is",
}


# What `demand` and `depth` wish for follows from the numbers beside it.
BECAUSE = {
    "steady": " for what arrives all the time",
    "drain": " to keep the promises of what waits",
    "upcoming": " to keep the promises of what becomes due soon",
}


def limit_words(limited_by: str | None) -> str:
    """Why the crew does not have the wanted size; empty if it does."""
    if limited_by is None:
        return ""
    what, _, name = limited_by.partition(":")
    if what == "hours":
        return f"the hours {name} bound it"
    return LIMITS.get(limited_by, limited_by)


def reason_words(decision: Decision | None) -> str:
    """Why the crew has its size."""
    if decision is None:
        return "no decision has been made yet"
    if decision.due is None:
        return LIMITS["no_observation"]
    parts = (_observed(decision), limit_words(decision.limited_by))
    return "; ".join(part for part in parts if part)


def act_words(decision: Decision) -> str:
    acts = {"hired": decision.hired, "taken_back": decision.taken_back, "retired": decision.retired}
    return acts_text(acts) or "no change"


class Stretch(NamedTuple):
    """Equal decisions in a row; `first` is the oldest."""

    first: Decision
    last: Decision
    looks: int
    node: str = ""


def stretches(decisions: Iterable[Decision]) -> Sequence[Stretch]:
    """Decisions of one node, newest first; those in a row without effect, for one reason, are
    merged.
    """
    return _merged(Stretch(one, one, 1) for one in decisions)


def stretches_of(runs: Iterable[JournalRun]) -> Sequence[Stretch]:
    """The same of rows of the journal; each node has lines of its own."""
    return _merged(
        Stretch(first, evolve(first, at=run.until.timestamp()), run.ticks, run.node)
        for run in runs
        for first in (decision_of(run),)
    )


def _merged(parts: Iterable[Stretch]) -> Sequence[Stretch]:
    found: list[Stretch] = []
    latest: dict[str, int] = {}  # of each node
    for one in parts:
        place = latest.get(one.node)
        if place is not None and _is_same(found[place].last, one.last):
            before = found[place]
            found[place] = before._replace(last=one.last, looks=before.looks + one.looks)
        else:
            latest[one.node] = len(found)
            found.append(one)
    if len(latest) <= 1:  # whatever became of its clock
        return found[::-1]
    return sorted(found, key=lambda one: one.last.at, reverse=True)


def _is_same(before: Decision, one: Decision) -> bool:
    return not changes_crew(before) and not changes_crew(one) and _gist(before) == _gist(one)


def _gist(one: Decision) -> object:
    return one.size_before, one.desired, one.limited_by, one.due is None, bool(one.due)


def changes_crew(one: Decision) -> bool:
    return bool(one.hired or one.taken_back or one.retired)


def _observed(decision: Decision) -> str:
    due = decision.due or 0
    jobs = plural(due, "due job").partition(" ")[2]
    words = f"{count_text(due, exact=decision.due_exact)} {jobs} seen"
    if decision.share is not None and decision.share != due:
        words += f" ({count_text(decision.share)} of them for this node)"
    words += f", {count_text(decision.busy)} running"
    wanted = decision.raw_wish
    if wanted is None:
        return words
    because = BECAUSE.get(decision.because or "", "")
    if decision.decided_by is not None and because:
        because += f" (a job of {decision.decided_by['kind']} most)"
    return f"{words}: {plural(wanted, 'worker')} wanted{because}"
