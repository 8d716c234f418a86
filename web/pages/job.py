"""One job: state and why, timeline, phases, attempts, payload and result. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from attrs import frozen

from musterd.store.input import decoded
from musterd.store.jobs import AttemptRecord, JobRecord
from musterd.store.lifecycle import EFFECTS, ENDED, LEASED, Action, AttemptOutcome, JobState
from musterd.store.phases import PhaseRecord, PhaseState, rounded
from musterd.store.report import error_line, max_attempts, option_facts, overall
from musterd.store.why import Why, band_text
from musterd.store.words import count_text, cut, plural, span
from musterd.web.pages import layout as ui
from musterd.web.pages.jobs import state_badge
from musterd.web.pages.layout import Frame, Html, View, el, join, link

VALUE_CHARACTERS_MAX = 20_000  # of a payload or result that are shown
PRETTY_CHARACTERS_MAX = 100_000  # longer texts are shown as they are
LOG_CHARACTERS_MAX = 10_000  # the end of an attempt's log
ATTEMPTS_SHOWN = 50
ERROR_WIDTH = 2_000


@frozen
class JobDetails:
    """`now` is the store's clock; None = unknown."""

    record: JobRecord
    why: Why | None = None
    now: datetime | None = None
    budget: int | None = None  # of its kind
    said: str | None = None  # what has just been done


def job(frame: Frame, details: JobDetails) -> View:
    record = details.record
    title = f"Job {record.id}"
    content = (
        el("p", link(frame.at("/ui/jobs"), "Jobs"), class_="crumb"),
        el("h1", title, " ", el("span", ui.name_text(record.kind), class_="dim")),
        ui.notice(details.said) if details.said else None,
        ui.regions(parts_of(frame, details)),
    )
    live = frame.at("/ui/live", view="job", id=record.id)
    return View("jobs", title, content, live=live)


def parts_of(frame: Frame, details: JobDetails) -> Mapping[str, Html]:
    """The parts that may change, by element id."""
    record = details.record
    return {
        "where": el("section", _where(frame, details), class_="card"),
        "why": _why(details.why),
        "way": ui.card("Timeline (UTC)", timeline(record)),
        "phases": _phases(record.phases),
        "attempts": _attempts(record.attempts),
        "values": _values(record),
    }


def _where(frame: Frame, details: JobDetails) -> Html:
    record, now = details.record, details.now
    leased = record.state in LEASED
    owner = f"{record.node}/{record.worker}" if record.worker is not None else record.node
    budget, was_delayed = max_attempts(record, details.budget), record.run_at != record.created_at
    shown = ui.facts(
        [
            ("State", state_badge(record)),
            ("Progress", _progress(record)),
            ("Attempt", ui.number(record.attempt) + (f" of {ui.number(budget)}" if budget else "")),
            ("Created (UTC)", ui.moment(record.created_at)),
            ("Due (UTC)", ui.moment(record.run_at) if was_delayed else None),
            ("Started (UTC)", ui.moment(record.started_at)),
            ("Finished (UTC)", ui.moment(record.finished_at)),
            ("Ran", _ran(record, now if leased else None)),
            ("Worker", ui.name_text(owner) if leased and owner else None),
            ("Lease until (UTC)", ui.moment(record.lease_expires_at) if leased else None),
            *_options(frame, record),
            ("Reason", ui.name_text(record.reason or "")),
            ("Webhook", _webhook(record)),
        ]
    )
    return join(shown, _actions(frame, record) if frame.may_act else None)


def _options(frame: Frame, record: JobRecord) -> list[tuple[str, Html | str]]:
    shown: dict[str, Html | str] = {
        name: ui.name_text(text) for name, text in option_facts(record) if text
    }
    if record.target:
        shown["target"] = link(frame.at("/ui/jobs", target=record.target), shown["target"])
    return [(name.capitalize(), text) for name, text in shown.items()]


def _ran(record: JobRecord, now: datetime | None) -> str:
    if now is None or record.started_at is None:
        return span(record.started_at, record.finished_at)
    return f"{ui.lasting_text((now - record.started_at).total_seconds())} so far"


def _webhook(record: JobRecord) -> Html | str | None:
    hook = record.webhook
    if hook is None:
        return None
    delivery = "delivered" if hook.sent_at else f"not delivered, tries: {hook.attempts}"
    return join(ui.name_text(hook.url), f" ({delivery})")


def _progress(record: JobRecord) -> Html | None:
    if record.progress is None and not record.phases:
        return None
    percent = overall(record)
    note = f" {cut(record.progress_note, 200)}" if record.progress_note else ""
    return join(_bar(percent, "progress"), note)


def _bar(percent: int, what: str) -> Html:
    bar = el("progress", f"{percent} %", value=str(percent), max="100", aria_label=what)
    return join(bar, f" {percent} %")


def _actions(frame: Frame, record: JobRecord) -> Html | None:
    allowed = [one for one in Action if (one, record.state) in EFFECTS]
    if record.cleared_at is not None:
        allowed = [one for one in allowed if one is not Action.CLEAR]
    if not allowed and record.state not in ENDED:
        return None
    acts = [_act(frame, record, one.value, one.value.capitalize()) for one in allowed]
    if record.state in AGAIN:
        acts.append(_act(frame, record, "again", "Run again"))
    if record.state in ENDED:
        ask = frame.at(f"/ui/jobs/{record.id}/delete")
        acts.append(link(ask, "Delete …", class_="button danger", data_key="delete"))
    return el("div", acts, class_="acts")


AGAIN = (JobState.SUCCEEDED, JobState.CANCELED)  # one that failed is resumed


def _act(frame: Frame, record: JobRecord, act: str, label: str) -> Html:
    mood = "danger" if act == Action.CANCEL else ""
    pressed = ui.button(label, mood=mood, data_key=f"act-{act}")
    where = f"/ui/jobs/{record.id}/{act}"
    return el("form", frame.hidden_tenant(), pressed, method="post", action=where)


def question(frame: Frame, record: JobRecord) -> View:
    """Before a job is deleted."""
    here = f"/ui/jobs/{record.id}"
    title = f"Delete job {record.id}?"
    form = el(
        "form", frame.hidden_tenant(), ui.button(f"Yes, delete job {record.id}", mood="danger"),
        link(frame.at(here), "No, go back", class_="button"),
        method="post", action=f"{here}/delete", class_="inline",
    )  # fmt: skip
    content = (
        el("h1", title), el("p", ui.name_text(record.kind), " ", state_badge(record)),
        el("p", "Its payload, result, attempts and logs go with it. Nothing brings them back,",
            " unless [retention] archive keeps what is deleted."), form,
    )  # fmt: skip
    return View("jobs", title, el("div", content, class_="card ask"))


def _why(why: Why | None) -> Html:
    if why is None:
        return join()
    items = [
        el("li", el("strong" if place == 0 else "span", cut(reason.text, ERROR_WIDTH)),
            el("p", "What to do: ", cut(reason.do, ERROR_WIDTH), class_="dim")
            if reason.do else None)
        for place, reason in enumerate(why.reasons)
    ]  # fmt: skip
    start = el("p", f"It {band_text(why.start)}.") if why.start is not None else None
    place = el("p", f"In line: {why.position.text}.") if why.position is not None else None
    return ui.card("Why it is in this state", el("ol", items, class_="reasons"), place, start)


PHASES: ui.Columns[PhaseRecord] = {
    "phase": lambda one: ui.name_text(one.name),
    "state": lambda one: ui.badge(one.state.value),
    "progress": lambda one: _bar(rounded(one.progress), f"progress of {one.name}"),
    "attempts": lambda one: ui.number(one.attempts),
    "started": lambda one: ui.moment(one.started_at),
    "ran": lambda one: span(one.started_at, one.finished_at),
    "result": lambda one: el("code", cut(one.result, 120))
    if one.result is not None and one.state is PhaseState.SUCCEEDED else None,
}  # fmt: skip


def _phases(phases: Sequence[PhaseRecord]) -> Html:
    shown = ui.table("Phases of this job", phases, PHASES, what="phase")
    return ui.card("Phases", shown) if phases else join()


ATTEMPTS: ui.Columns[AttemptRecord] = {
    "attempt": lambda one: ui.number(one.attempt),
    "outcome": lambda one: ui.badge("running" if one.outcome is None else one.outcome.value),
    "worker": lambda one: ui.name_text(_by(one)),
    "started": lambda one: ui.moment(one.started_at),
    "ran": lambda one: span(one.started_at, one.finished_at),
    "error": lambda one: el("span", cut(error_line(one.error), ERROR_WIDTH), class_="note"),
}


# Whose log is read at once: None = it runs.
READ_AT_ONCE = (None, AttemptOutcome.FAILED, AttemptOutcome.RETRYING)


def _attempts(attempts: Sequence[AttemptRecord]) -> Html:
    newest = attempts[::-1]
    shown = ui.table(
        "Attempts, the latest first", newest, ATTEMPTS, most=ATTEMPTS_SHOWN, what="earlier attempt"
    )
    logs = [
        _log(one, is_open=one is newest[0] and one.outcome in READ_AT_ONCE)
        for one in newest[:ATTEMPTS_SHOWN]
        if one.log
    ]
    return ui.card("Attempts", shown, logs) if attempts else join()


def _by(one: AttemptRecord) -> str:
    if one.node is None:
        return ""
    return one.node if one.worker is None else f"{one.node}/{one.worker}"


def _log(one: AttemptRecord, *, is_open: bool = False) -> Html:
    text = one.log or ""
    shown = text[-LOG_CHARACTERS_MAX:]
    before = "… " if len(shown) < len(text) else ""
    return el(
        "details",
        el("summary", f"Log of attempt {one.attempt}"),
        _pre(f"{before}{shown}", f"log of attempt {one.attempt}", follows=one.outcome is None),
        data_key=f"log-{one.attempt}",
        open=is_open,
    )


def _pre(text: str, about: str, *, follows: bool = False) -> Html:
    """`follows`: it grows, and shows its end."""
    return el("pre", text, tabindex="0", role="region", aria_label=about, data_tail=follows)


def _values(record: JobRecord) -> Html:
    payload = ui.card("Payload", _value(record.payload, "payload"))
    if record.error is not None:
        error = cut(error_line(record.error), VALUE_CHARACTERS_MAX)
        return el("div", payload, ui.card("Error", _pre(error, "error")), class_="pair")
    if record.result is None:
        return payload
    return el("div", payload, ui.card("Result", _value(record.result, "result")), class_="pair")


def _value(text: str, about: str) -> Html:
    shown = pretty(text)
    rest = len(shown) - VALUE_CHARACTERS_MAX
    if rest <= 0:
        return _pre(shown, about)
    more = el("p", f"… and {count_text(rest)} more characters: the API has them all", class_="dim")
    return join(_pre(shown[:VALUE_CHARACTERS_MAX], about), more)


def pretty(text: str) -> str:
    """Indented JSON, if that is cheap; other texts and deeply nested JSON unchanged."""
    if len(text) > PRETTY_CHARACTERS_MAX:
        return text
    value = decoded(text)
    if value is text:
        return text
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:
        return text


STEPS_SHOWN = 60  # the latest
PHASE = 2  # the place of a phase among what happens at once
WORDS_WIDTH = 300


class Step(NamedTuple):
    at: datetime
    order: int  # of what happened at the same moment
    mood: str  # the class of its mark
    words: str


def timeline(record: JobRecord) -> Html:
    steps = steps_of(record)
    left = len(steps) - STEPS_SHOWN
    shown = [
        el("li", _time_of_day(at), " ", el("span", cut(words, WORDS_WIDTH)), class_=mood)
        for at, _, mood, words in steps[-STEPS_SHOWN:]
    ]
    before = el("li", f"{plural(left, 'earlier step')} not shown") if left > 0 else None
    return el("ol", before, shown, class_="way")


def steps_of(record: JobRecord) -> list[Step]:
    """All known steps of the job in order of time."""
    end = record.finished_at if record.state in ENDED else None
    steps = [
        step._replace(at=end) if end and step.order == PHASE and step.at > end else step
        for step in _steps(record)
    ]
    return sorted(steps, key=lambda step: (step.at, step.order))


def _steps(record: JobRecord) -> Iterator[Step]:
    yield Step(record.created_at, 0, "made", "created")
    waits = record.state in (JobState.QUEUED, JobState.PENDING)
    if waits and record.run_at > record.created_at:
        yield Step(record.run_at, 1, "queued", "due")
    for attempt in record.attempts:
        yield from _attempt_steps(attempt)
    for phase in record.phases:
        if phase.finished_at is not None:
            words = f"phase {phase.name}: {phase.state.value}"
            yield Step(phase.finished_at, PHASE, "phase", words)
    if record.requested_at is not None and record.request is not None:
        yield Step(record.requested_at, 3, "asked", f"{record.request} requested")
    if record.finished_at is not None and record.state in ENDED and not _is_in_last_attempt(record):
        reason = f": {record.reason}" if record.reason else ""
        yield Step(record.finished_at, 5, record.state.value, f"{record.state.value}{reason}")
    yield from _afterwards(record)


def _is_in_last_attempt(record: JobRecord) -> bool:
    """Whether the end of the last attempt says it all."""
    last = record.attempts[-1] if record.attempts else None
    if last is None or last.outcome is None or record.reason:
        return False
    return last.outcome.value == record.state.value and last.finished_at == record.finished_at


def _time_of_day(at: datetime) -> Html:
    at = at.astimezone(UTC)
    return ui.time_element(at, f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}")


def _attempt_steps(attempt: AttemptRecord) -> Iterator[Step]:
    by = "" if attempt.node is None else f" on {attempt.node}"
    by += "" if attempt.worker is None else f", worker {attempt.worker}"
    if attempt.started_at is not None:
        yield Step(attempt.started_at, 1, "started", f"attempt {attempt.attempt} started{by}")
    if attempt.finished_at is not None and attempt.outcome is not None:
        error = error_line(attempt.error)
        outcome = attempt.outcome.value
        words = f"attempt {attempt.attempt} ended: {outcome}{f', {error}' if error else ''}"
        yield Step(attempt.finished_at, 4, outcome, words)


def _afterwards(record: JobRecord) -> Iterator[Step]:
    if record.cleared_at is not None:
        yield Step(record.cleared_at, 6, "cleared", "marked as dealt with")
    if record.webhook is not None and record.webhook.sent_at is not None:
        yield Step(record.webhook.sent_at, 7, "told", "webhook delivered")
    if record.stale_at is not None:
        yield Step(record.stale_at, 8, "stale", "went stale")
