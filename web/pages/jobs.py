"""The list of jobs with its filter, and the question before a bulk action. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from musterd.store.bulk import Group, Survey, Tally
from musterd.store.control import states_for
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import LEASED, Action, JobState
from musterd.store.queue import Counts
from musterd.store.report import error_line, overall
from musterd.store.searching import Reach
from musterd.store.words import count_text, cut, plural, span
from musterd.web.pages import layout as ui
from musterd.web.pages.layout import Frame, Html, View, el, join, link
from musterd.web.pages.overview import job_link

KINDS_LISTED = 100  # in the field that takes a kind; any other can be typed
WORDS_WIDTH = 120


@frozen
class Filter:
    """Which jobs are listed; empty values match all. Times are as somebody has written them."""

    states: tuple[JobState, ...] = ()
    kind: str | None = None
    target: str | None = None
    dedup_key: str | None = None
    error: str | None = None
    since: str | None = None
    until: str | None = None
    time: str | None = None  # which one `since` and `until` are about: `made` or `ended`

    @property
    def texts(self) -> Mapping[str, str | None]:
        """By the name of the field."""
        time = self.time if self.since or self.until else None
        return {
            "kind": self.kind, "target": self.target, "dedup_key": self.dedup_key,
            "error": self.error, "since": self.since, "until": self.until, "time": time,
        }  # fmt: skip

    @property
    def is_for_all(self) -> bool:
        """Whether one can act on all jobs that match: actions know of no other filter."""
        return not (self.dedup_key or self.error or self.since or self.until)

    @property
    def query(self) -> dict[str, str | Sequence[str] | None]:
        return {"state": [state.value for state in self.states], **self.texts}

    def fields(self) -> Html:
        """For forms."""
        pairs = [("state", state.value) for state in self.states]
        pairs += [(name, text) for name, text in self.texts.items() if text]
        return join([ui.hidden(name, value) for name, value in pairs])

    @property
    def words(self) -> str:
        states = " or ".join(state.value for state in self.states)
        named = (
            ("kind", self.kind), ("target", self.target), ("key", self.dedup_key),
            ("error with", self.error), (f"{self.time or 'made'} since", self.since),
            (f"{self.time or 'made'} before", self.until),
        )  # fmt: skip
        parts = [states, *(f"{name} {text}" for name, text in named if text)]
        return ", ".join(part for part in parts if part) or "all jobs"


@frozen
class JobList:
    """One page of the list. `records` None = the store does not answer."""

    which: Filter
    records: Sequence[JobRecord] | None
    after: str | None = None  # the cursor of the next page
    is_first: bool = True
    counts: Counts | None = None
    kinds: Sequence[str] = ()
    said: str | None = None  # what has just been done
    reach: Reach | None = None  # how far the search came, if jobs may be missing


def jobs(frame: Frame, listing: JobList) -> View:
    content = (
        el("h1", "Jobs"),
        ui.notice(listing.said) if listing.said else None,
        _filter(frame, listing),
        _find(frame),
        ui.regions({"newer": join()}),
        _list(frame, listing),
        _new(frame, listing.kinds) if frame.may_act else None,
    )
    return View("jobs", "Jobs", content, live=_live(frame, listing))


def _live(frame: Frame, listing: JobList) -> str | None:
    """Where the rows shown are kept up to date, and on the first page newer jobs are counted."""
    if listing.records is None:
        return None
    ids = ",".join(str(one.id) for one in listing.records)
    if not listing.is_first:
        return frame.at("/ui/live", view="jobs", ids=ids)
    return frame.at("/ui/live", view="jobs", ids=ids, newer="true", **listing.which.query)


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
        el("div", _search(listing.which), ui.button("Filter"),
            link(frame.at("/ui/jobs"), "Clear filter"), class_="inline"),
        el("datalist", listed, id="kinds"),
        frame.hidden_tenant(),
        method="get", action="/ui/jobs", class_="card filter",
    )  # fmt: skip


def _search(which: Filter) -> list[Html]:
    when = "-2h, 03:12, RFC 3339"
    times = [
        el("option", words, value=value, selected=value == which.time)
        for value, words in (("made", "made"), ("ended", "ended"))
    ]
    return [
        _field("kind", "Kind", which.kind, "kinds"),
        _field("target", "Target", which.target),
        _field("key", "Key", which.dedup_key, name="dedup_key"),
        _field("error", "Error with", which.error),
        el("span", el("label", "Were", for_="time"), el("select", times, id="time", name="time")),
        _field("since", "since (UTC)", which.since, placeholder=when),
        _field("until", "before (UTC)", which.until, placeholder=when),
    ]


def _field(
    id_: str, label: str, value: str | None, options: str | None = None, **own: str | bool
) -> Html:
    named = {"name": id_, **own}
    field = el("input", id=id_, value=value or "", list=options, autocomplete="off", **named)
    return el("span", el("label", label, for_=id_), field)


def _find(frame: Frame) -> Html:
    field = el(
        "input", id="find", name="id", inputmode="numeric", required=True, autocomplete="off"
    )
    return el(
        "form", frame.hidden_tenant(), el("label", "Job number", for_="find"), field,
        ui.button("Show"), method="get", action="/ui/find", class_="inline find",
    )  # fmt: skip


def _new(frame: Frame, kinds: Sequence[str]) -> Html:
    """A form for one job. What is left empty is as if it had not been given."""
    first = sorted(kinds)[:KINDS_LISTED]
    fields = [
        _field("new-kind", "Kind", None, "new-kinds", name="kind", required=True),
        el("datalist", [el("option", value=kind) for kind in first], id="new-kinds"),
        el(
            "label", "Payload, as JSON",
            el("textarea", id="payload", name="payload", rows="4", placeholder="{}"),
            class_="wide",
        ),
        _field("new-target", "Target", None, name="target"),
        _field("priority", "Priority", None, inputmode="numeric"),
        _field("delay_seconds", "Delay in seconds", None, inputmode="decimal"),
        _field("dedup_key", "Deduplication key", None),
        el("label", el("input", type="checkbox", name="hold", value="true"), "Hold it"),
        ui.button("Enqueue", mood="first"),
    ]  # fmt: skip
    form = el(
        "form", frame.hidden_tenant(), fields, method="post", action="/ui/jobs/enqueue",
        class_="inline",
    )  # fmt: skip
    return el(
        "details", el("summary", "Enqueue a job"), form, class_="card", data_key="enqueue",
        id="enqueue",
    )  # fmt: skip


def _list(frame: Frame, listing: JobList) -> Html:
    if listing.records is None:
        words = "the store does not answer, or takes too long: try again, or ask for fewer jobs"
        return ui.notice(words, "ill")
    if not listing.records:
        none = el("p", f"no job matches: {listing.which.words}", class_="card dim")
        return none if listing.reach is None else _how_far(frame, listing, listing.reach)
    caption = f"Jobs, the newest first: {listing.which.words}"
    shown = ui.live_table(caption, listing.records, _columns(frame), lambda one: row_name(one.id))
    if listing.reach is not None:
        shown = join(shown, _how_far(frame, listing, listing.reach))
    if not frame.may_act:
        return el("div", shown, _pages(frame, listing), class_="card")
    return el(
        "form", _actions(listing.which), shown, _pages(frame, listing), listing.which.fields(),
        frame.hidden_tenant(), method="post", action="/ui/jobs/confirm", class_="card",
        data_choose=True,
    )  # fmt: skip


def row_name(job_id: int) -> str:
    return f"job-{job_id}"


def parts_of(frame: Frame, ids: Sequence[int], records: Sequence[JobRecord]) -> Mapping[str, Html]:
    """The rows of a page of the list as they are now; `records` in any order."""
    columns, known = _columns(frame), {one.id: one for one in records}
    gone = len(columns) - 1 - frame.may_act
    rows = {
        one: ui.row_cells(columns, known[one])
        if one in known
        else join(
            el("td") if frame.may_act else None, el("td", str(one), data_label="job"),
            el("td", "deleted", class_="dim", colspan=gone),
        )
        for one in ids
    }  # fmt: skip
    return {row_name(one): row for one, row in rows.items()}


NEWER_MAX = 10  # counted up to here


def newer_part(frame: Frame, which: Filter, count: int) -> Html:
    """How many jobs match that came after the page was made."""
    if not count:
        return join()
    words = f"{count_text(count, exact=count < NEWER_MAX)} newer {'job' if count == 1 else 'jobs'}"
    return el("p", f"{words}: ", link(frame.at("/ui/jobs", **which.query), "show"), class_="newer")


def _how_far(frame: Frame, listing: JobList, reach: Reach) -> Html:
    further = frame.at("/ui/jobs", **listing.which.query, cursor=listing.after)
    return ui.notice(
        (f"{plural(reach.looked, 'job')} looked at, back to ", ui.moment(reach.made_at),
            ". Older ones may match: ", link(further, "look further")), "warn",
    )  # fmt: skip


def _actions(which: Filter) -> Html:
    meant = [("these", "the chosen jobs"), ("all", "all jobs that match")]
    choices = [
        el("label", el("input", type="radio", name="which", value=value, checked=value == "these"),
            label)
        for value, label in meant[: 2 if which.is_for_all else 1]
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


def _columns(frame: Frame) -> ui.Columns[JobRecord]:
    chosen: ui.Columns[JobRecord] = {
        el("span", "chosen", class_="quiet"): lambda one: el(
            "input", type="checkbox", name="id", value=str(one.id), aria_label=f"job {one.id}"
        )
    }
    return {
        **(chosen if frame.may_act else {}),
        "job": lambda one: job_link(frame, one.id),
        "state": state_badge,
        "kind": lambda one: ui.name_text(one.kind),
        "target": lambda one: ui.name_text(one.target or ""),
        "created": lambda one: ui.moment(one.created_at),
        "ran": lambda one: span(one.started_at, one.finished_at),
        "attempt": lambda one: ui.number(one.attempt),
        "note": _note,
    }


def _note(record: JobRecord) -> Html | str:
    words = cut(note_of(record), WORDS_WIDTH)
    return el("span", words, class_="note") if words else ""


def state_badge(record: JobRecord) -> Html:
    request = f" · {record.request} requested" if record.request and record.state in LEASED else ""
    cleared = " · cleared" if record.cleared_at else ""
    return join(ui.badge(record.state.value), el("span", request, cleared, class_="dim"))


def note_of(record: JobRecord) -> str:
    """The most important fact beside the state."""
    if record.state in LEASED and (record.progress is not None or record.phases):
        note = f": {record.progress_note}" if record.progress_note else ""
        return f"{overall(record)} %{note}"
    return error_line(record.error) or record.reason or ""


def _pages(frame: Frame, listing: JobList) -> Html:
    query = listing.which.query
    newest = link(frame.at("/ui/jobs", **query), "Newest")
    older = link(frame.at("/ui/jobs", **query, cursor=listing.after), "Older")
    places = (None if listing.is_first else newest, older if listing.after else None)
    return el("nav", places, aria_label="Pages", class_="pages")


GROUPS_SHOWN = 20
IDS_SHOWN = 50


@frozen
class BulkRequest:
    """An action on the jobs of `ids`, or on all that match, after `after_id` up to `until_id`."""

    action: Action
    which: Filter
    ids: Sequence[int] = ()
    is_all: bool = False
    until_id: int = 0
    after_id: int = 0


def question(frame: Frame, about: BulkRequest, found: Survey | None = None) -> View:
    """`found`: how many match, if all that match are meant."""
    back = link(frame.at("/ui/jobs", **about.which.query), "No, go back", class_="button")
    many = plural(len(about.ids), "job")
    if found is not None:
        more = f"{count_text(found.matched)} or more jobs"
        many = plural(found.matched, "job") if found.whole else more
    title = f"{about.action.value.capitalize()} {many}?"
    nothing = not about.ids and (found is None or not found.matched)
    answers = back if nothing else _answers(frame, about, many, back)
    content = (el("h1", title), _affected(about, found), answers)
    return View("jobs", title, el("div", content, class_="card ask"))


def _affected(about: BulkRequest, found: Survey | None) -> Html:
    wanted = " or ".join(state.value for state in states_for(about.action))
    rule = el("p", f"Only jobs that are {wanted} can be {about.action.past}; ",
        "jobs that change meanwhile are left out.", class_="dim")  # fmt: skip
    if found is None:
        shown = ", ".join(map(str, about.ids[:IDS_SHOWN])) or "No job was chosen."
        more = ui.left_out(IDS_SHOWN, len(about.ids), "job")
        return join(el("p", f"{shown}, {more}" if more else shown), rule)
    groups = found.groups
    listed = ui.table("Matching jobs", groups, GROUPS, most=GROUPS_SHOWN, what="group")
    return join(el("p", f"Filter: {about.which.words}"), listed if groups else None, rule)


GROUPS: ui.Columns[Group] = {
    "state": lambda one: ui.badge(one.state.value),
    "kind": lambda one: ui.name_text(one.kind),
    "jobs": lambda one: ui.number(one.count),
    "the first": lambda one: ", ".join(map(str, one.ids)),
}


def _answers(frame: Frame, about: BulkRequest, many: str, back: Html) -> Html:
    label = f"Yes, {about.action.value} {many}"
    return el(
        "form",
        [ui.hidden("id", one) for one in about.ids],
        ui.hidden("action", about.action.value),
        None if about.ids else (ui.hidden("which", "all"), ui.hidden("until_id", about.until_id)),
        about.which.fields(),
        frame.hidden_tenant(),
        ui.button(label, mood="danger" if about.action is Action.CANCEL else "first"),
        back,
        method="post",
        action="/ui/jobs/act",
        class_="inline",
    )


def unfinished(frame: Frame, about: BulkRequest, tally: Tally) -> View:
    """How far a bulk action has come, and a button to continue."""
    form = el(
        "form",
        ui.facts([("So far", done_words(about.action, tally))]),
        ui.hidden("action", about.action.value), ui.hidden("which", "all"),
        ui.hidden("until_id", about.until_id), ui.hidden("after", tally.through_id),
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
    parts = [f"{plural(tally.done - tally.requested, 'job')} {action.past}"]
    if tally.requested:
        parts.append(f"{plural(tally.requested, 'running job')} about to stop")
    if tally.skipped:
        parts.append(f"{plural(tally.skipped, 'job')} left out (changed, not allowed or busy)")
    return "; ".join(parts)
