"""The list of jobs with its filter, and the question before a bulk action. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from musterd.store.bulk import Survey, Tally
from musterd.store.control import states_for
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import LEASED, Action, JobState
from musterd.store.queue import Counts
from musterd.store.report import error_line, overall
from musterd.store.words import count_text, cut, plural, span
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Content, Frame, Html, View, el, join, link
from musterd.web.pages.overview import job_link

KINDS_LISTED = 100  # in the field that takes a kind; any other can be typed
WORDS_WIDTH = 120


@frozen
class Filter:
    """Which jobs are listed; what is empty asks for nothing."""

    states: tuple[JobState, ...] = ()
    kind: str | None = None
    target: str | None = None

    @property
    def query(self) -> dict[str, str | Sequence[str] | None]:
        states = [state.value for state in self.states]
        return {"state": states, "kind": self.kind, "target": self.target}

    def fields(self) -> Html:
        """For forms: the same filter."""
        pairs = [("state", state.value) for state in self.states]
        pairs += [("kind", self.kind)] if self.kind else []
        pairs += [("target", self.target)] if self.target else []
        return join([ui.hidden(name, value) for name, value in pairs])

    @property
    def words(self) -> str:
        states = " or ".join(state.value for state in self.states)
        parts = [states, f"kind {self.kind}" if self.kind else ""]
        parts.append(f"target {self.target}" if self.target else "")
        return ", ".join(part for part in parts if part) or "all jobs"


@frozen
class JobList:
    """One page of the list. `records` is None where the store does not say."""

    which: Filter
    records: Sequence[JobRecord] | None
    after: str | None = None  # the cursor of the next page
    is_first: bool = True
    counts: Counts | None = None
    kinds: Sequence[str] = ()
    said: str | None = None  # what has just been done


def jobs(frame: Frame, listing: JobList) -> View:
    content = (
        el("h1", "Jobs"),
        ui.notice(listing.said) if listing.said else None,
        _filter(frame, listing),
        _list(frame, listing),
    )
    return View("jobs", "Jobs", content)


def _filter(frame: Frame, listing: JobList) -> Html:
    counts = {} if listing.counts is None else listing.counts.by_state
    states = [
        el(
            "label",
            el("input", type="checkbox", name="state", value=state.value,
                checked=state in listing.which.states),
            ui.badge(state.value),
            el("span", count_text(counts.get(state, 0)), class_="dim") if listing.counts else None,
        )
        for state in JobState
    ]  # fmt: skip
    listed = [el("option", value=kind) for kind in sorted(listing.kinds)[:KINDS_LISTED]]
    return el(
        "form",
        el("fieldset", el("legend", "State"), states, class_="chips"),
        el("div", _field("kind", "Kind", listing.which.kind, "kinds"),
            _field("target", "Target", listing.which.target), ui.button("Filter"),
            link(frame.at("/ui/jobs"), "Clear filter"), class_="inline"),
        el("datalist", listed, id="kinds"),
        frame.hidden_tenant(),
        method="get", action="/ui/jobs", class_="card filter",
    )  # fmt: skip


def _field(name: str, label: str, value: str | None, options: str | None = None) -> Html:
    field = el("input", id=name, name=name, value=value or "", list=options, autocomplete="off")
    return el("span", el("label", label, for_=name), field)


def _list(frame: Frame, listing: JobList) -> Html:
    if listing.records is None:
        words = "the store does not answer, or takes too long: try again, or ask for fewer jobs"
        return ui.notice(words, "ill")
    if not listing.records:
        return el("p", f"no job matches: {listing.which.words}", class_="card dim")
    rows = [_row(frame, record) for record in listing.records]
    heads: list[Content] = [
        "job",
        "state",
        "kind",
        "target",
        "created (UTC)",
        "ran",
        "attempt",
        "note",
    ]
    if frame.may_act:
        heads.insert(0, el("span", "chosen", class_="quiet"))
    shown = ui.table(f"Jobs, the newest first: {listing.which.words}", heads, rows)
    if not frame.may_act:
        return el("div", shown, _pages(frame, listing), class_="card")
    return el(
        "form", _actions(), shown, _pages(frame, listing), listing.which.fields(),
        frame.hidden_tenant(), method="post", action="/ui/jobs/confirm", class_="card",
        data_choose=True,
    )  # fmt: skip


def _actions() -> Html:
    choices = [
        el("label", el("input", type="radio", name="which", value=value, checked=value == "these"),
            label)
        for value, label in (("these", "the chosen jobs"), ("all", "all jobs that match"))
    ]  # fmt: skip
    acts = [
        ui.button(action.value.capitalize(), name="action", value=action.value,
            mood="danger" if action is Action.CANCEL else "")
        for action in Action
    ]  # fmt: skip
    return el(
        "fieldset", el("legend", "Act on"), el("span", choices, class_="choices"),
        el("span", acts, class_="acts"), class_="bulk",
    )  # fmt: skip


def _row(frame: Frame, record: JobRecord) -> Html:
    chosen = el(
        "input", type="checkbox", name="id", value=str(record.id), aria_label=f"job {record.id}"
    )
    cells: list[Content] = [
        job_link(frame, record.id),
        state_badge(record),
        ui.name_text(record.kind),
        ui.name_text(record.target or ""),
        ui.moment(record.created_at),
        span(record.started_at, record.finished_at),
        ui.number(record.attempt),
        el("span", cut(note_of(record), WORDS_WIDTH), class_="note"),
    ]
    return ui.row(chosen, *cells) if frame.may_act else ui.row(*cells)


def state_badge(record: JobRecord) -> Html:
    request = f" · {record.request} requested" if record.request and record.state in LEASED else ""
    cleared = " · cleared" if record.cleared_at else ""
    return join(ui.badge(record.state.value), el("span", request, cleared, class_="dim"))


def note_of(record: JobRecord) -> str:
    """The most important fact about the job beside its state."""
    if record.state in LEASED and (record.progress is not None or record.phases):
        note = f": {record.progress_note}" if record.progress_note else ""
        return f"{overall(record)} %{note}"
    return error_line(record.error) or record.reason or ""


def _pages(frame: Frame, listing: JobList) -> Html:
    query = listing.which.query
    places = [
        None if listing.is_first else link(frame.at("/ui/jobs", **query), "Newest"),
        link(frame.at("/ui/jobs", **query, cursor=listing.after), "Older")
        if listing.after
        else None,
    ]
    return el("nav", places, aria_label="Pages", class_="pages")


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
    """A bulk action to confirm: on these jobs, or on all that match, of which `found` is the count;
    jobs after `until_id` are not included.
    """

    action: Action
    which: Filter
    ids: Sequence[int] = ()
    found: Survey | None = None
    until_id: int = 0


def question(frame: Frame, about: Question) -> View:
    back = link(frame.at("/ui/jobs", **about.which.query), "No, go back", class_="button")
    title = f"{about.action.value.capitalize()} {_how_many(about)}?"
    nothing = not about.ids and (about.found is None or not about.found.matched)
    content = (el("h1", title), _affected(about), back if nothing else _answers(frame, about, back))
    return View("jobs", title, el("div", content, class_="card ask"))


def _how_many(about: Question) -> str:
    if about.found is None:
        return plural(len(about.ids), "job")
    if about.found.whole:
        return plural(about.found.matched, "job")
    return f"{count_text(about.found.matched)} or more jobs"


def _affected(about: Question) -> Html:
    wanted = " or ".join(state.value for state in states_for(about.action))
    rule = el("p", f"Only jobs that are {wanted} can be {PAST[about.action]}; ",
        "jobs that change meanwhile are left out.", class_="dim")  # fmt: skip
    if about.found is None:
        return join(el("p", _id_list(about.ids)), rule)
    groups = about.found.groups
    rows = [ui.row(ui.badge(one.state.value), ui.name_text(one.kind), ui.number(one.count),
        ", ".join(map(str, one.ids))) for one in groups[:GROUPS_SHOWN]]  # fmt: skip
    heads = ("state", "kind", "jobs", "the first")
    listed = ui.table("Matching jobs", heads, rows, ui.left_out(len(rows), len(groups), "group"))
    return join(el("p", f"Filter: {about.which.words}"), listed if rows else None, rule)


def _id_list(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:IDS_SHOWN])) or "No job was chosen."
    return shown + (f", {ui.left_out(IDS_SHOWN, len(ids), 'job')}" if len(ids) > IDS_SHOWN else "")


def _answers(frame: Frame, about: Question, back: Html) -> Html:
    label = f"Yes, {about.action.value} {_how_many(about)}"
    return el(
        "form",
        [ui.hidden("id", one) for one in about.ids],
        ui.hidden("action", about.action.value),
        None if about.ids else (ui.hidden("which", "all"), ui.hidden("until", about.until_id)),
        about.which.fields(),
        frame.hidden_tenant(),
        ui.button(label, mood="danger" if about.action is Action.CANCEL else "first"),
        back,
        method="post",
        action="/ui/jobs/act",
        class_="inline",
    )


@frozen
class Unfinished:
    """A bulk action that is not at its end: how far it has come, and where it goes on."""

    question: Question
    tally: Tally
    after_id: int


def unfinished(frame: Frame, rest: Unfinished) -> View:
    about = rest.question
    form = el(
        "form",
        ui.facts([("So far", done_words(about.action, rest.tally))]),
        ui.hidden("action", about.action.value), ui.hidden("which", "all"),
        ui.hidden("until", about.until_id), ui.hidden("after", rest.after_id),
        about.which.fields(), frame.hidden_tenant(),
        el("div", ui.button("Go on", mood="first"),
            link(frame.at("/ui/jobs", **about.which.query), "Stop here", class_="button"),
            class_="inline"),
        method="post", action="/ui/jobs/act", class_="card ask",
    )  # fmt: skip
    words = "There are more jobs than can be done in one go. What is done stays done."
    title = f"{about.action.value.capitalize()}: not all yet"
    return View("jobs", title, (el("h1", title), el("p", words), ui.card("Go on?", form)))


def done_words(action: Action, tally: Tally) -> str:
    """The result of a bulk action."""
    parts = [f"{plural(tally.done - tally.requested, 'job')} {PAST[action]}"]
    if tally.requested:
        parts.append(f"{plural(tally.requested, 'running job')} about to stop")
    if tally.skipped:
        parts.append(f"{plural(tally.skipped, 'job')} left out (changed, not allowed or busy)")
    return "; ".join(parts)
