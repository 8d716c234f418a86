"""The question before something is done to many jobs, and how far it has come. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from musterd.store.bulk import Survey, Tally
from musterd.store.job import Action
from musterd.store.selection import states_for
from musterd.store.words import count_text, plural
from musterd.web.pages.html import Html, el, join, link
from musterd.web.pages.jobs import Filter
from musterd.web.pages.layout import (
    Frame,
    View,
    badge,
    button,
    card,
    facts,
    hidden,
    left_out,
    name_text,
    number,
    row,
    table,
)

GROUPS_SHOWN = 20
IDS_SHOWN = 50
PAST = {
    Action.CANCEL: "canceled",
    Action.PAUSE: "paused",
    Action.RESUME: "resumed",
    Action.RELEASE: "released",
    Action.CLEAR: "cleared",
}


@frozen
class Question:
    """What somebody is about to do: to these jobs, or to all that fit. `found` counts the latter;
    `until_id`: jobs that come later are not meant.
    """

    action: Action
    which: Filter
    ids: Sequence[int] = ()
    found: Survey | None = None
    until_id: int = 0


def question(frame: Frame, asked: Question) -> View:
    back = link(frame.at("/ui/jobs", **asked.which.query), "No, go back", class_="button")
    title = f"{asked.action.value.capitalize()} {_how_many(asked)}?"
    nothing = not asked.ids and (asked.found is None or not asked.found.matched)
    content = (
        el("h1", title),
        _meant(asked),
        back if nothing else _answers(frame, asked, back),
    )
    return View("jobs", title, el("div", content, class_="card ask"))


def _how_many(asked: Question) -> str:
    if asked.found is None:
        return plural(len(asked.ids), "job")
    if asked.found.whole:
        return plural(asked.found.matched, "job")
    return f"{count_text(asked.found.matched)} or more jobs"


def _meant(asked: Question) -> Html:
    wanted = " or ".join(state.value for state in states_for(asked.action))
    law = el("p", f"Only jobs that are {wanted} can be told to {asked.action.value}; ",
        "what changes meanwhile is left out.", class_="dim")  # fmt: skip
    if asked.found is None:
        return join(el("p", _ids(asked.ids)), law)
    groups = asked.found.groups
    rows = [row(badge(one.state.value), name_text(one.kind), number(one.count),
        ", ".join(map(str, one.ids))) for one in groups[:GROUPS_SHOWN]]  # fmt: skip
    heads = ("state", "kind", "jobs", "the first")
    listed = table("What fits", heads, rows, left_out(len(rows), len(groups), "group"))
    return join(el("p", f"Filter: {asked.which.words}"), listed if rows else None, law)


def _ids(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:IDS_SHOWN])) or "No job was chosen."
    return shown + (f", {left_out(IDS_SHOWN, len(ids), 'job')}" if len(ids) > IDS_SHOWN else "")


def _answers(frame: Frame, asked: Question, back: Html) -> Html:
    label = f"Yes, {asked.action.value} {_how_many(asked)}"
    return el(
        "form",
        [hidden("id", one) for one in asked.ids],
        hidden("action", asked.action.value),
        None if asked.ids else (hidden("which", "all"), hidden("until", asked.until_id)),
        asked.which.fields(),
        frame.hidden_tenant(),
        button(label, mood="danger" if asked.action is Action.CANCEL else "first"),
        back,
        method="post",
        action="/ui/jobs/act",
        class_="inline",
    )


@frozen
class Rest:
    """A bulk action that is not at its end: how far it has come, and where it goes on."""

    question: Question
    tally: Tally
    after_id: int


def unfinished(frame: Frame, rest: Rest) -> View:
    asked = rest.question
    form = el(
        "form",
        facts([("So far", done_words(asked.action, rest.tally))]),
        hidden("action", asked.action.value), hidden("which", "all"),
        hidden("until", asked.until_id), hidden("after", rest.after_id),
        asked.which.fields(), frame.hidden_tenant(),
        el("div", button("Go on", mood="first"),
            link(frame.at("/ui/jobs", **asked.which.query), "Leave it there", class_="button"),
            class_="inline"),
        method="post", action="/ui/jobs/act", class_="card ask",
    )  # fmt: skip
    words = "There are more jobs than can be done in one go. What is done stays done."
    title = f"{asked.action.value.capitalize()}: not all yet"
    return View("jobs", title, (el("h1", title), el("p", words), card("Go on?", form)))


def done_words(action: Action, tally: Tally) -> str:
    """What a bulk action has come to."""
    parts = [f"{plural(tally.done - tally.requested, 'job')} {PAST[action]}"]
    if tally.requested:
        parts.append(f"{plural(tally.requested, 'running job')} asked to stop")
    if tally.skipped:
        parts.append(f"{plural(tally.skipped, 'job')} left out (changed, not allowed or busy)")
    return "; ".join(parts)
