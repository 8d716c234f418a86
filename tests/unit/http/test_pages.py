"""What the live page looks like: nothing that others have named is ever markup, and nothing grows
without a bound.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from http import HTTPStatus
from typing import get_args
from uuid import UUID

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.manager.node.status import WorkerView
from musterd.manager.scaling.decision import Bound, Limit
from musterd.manager.scaling.journal import packed
from musterd.store.bulk import Survey
from musterd.store.compared_hours import ComparedHour, HourFigures
from musterd.store.control import Candidate
from musterd.store.lifecycle import Action, JobState
from musterd.store.scaling_journal import JournalRun
from musterd.web.pages import job, jobs, layout, nodes, overview, scaling
from musterd.web.pages.jobs import BulkRequest, question
from musterd.web.pages.layout import Frame, View, address, document, el, escaped, join, link
from musterd.web.pages.overview import sparkline
from musterd.web.pages.scaling import LIMITS, reason_words, stretches, stretches_of
from tests.support.page_scene import (
    COUNTS,
    crew_named,
    decision,
    job_of,
    nodes_of,
    overview_of,
    record_of,
)

TEXTS = st.text(st.characters(exclude_categories=()), min_size=1, max_size=60)
NASTY = (
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='x", "&lt;",
    "]]>",
    "</title></head><b>", "<!--", "javascript:alert(1)", "\ud800", "\u202e\x00\x1b[31m", "a\nb",
)  # fmt: skip
BYTES_MAX = 100_000


def framed(text: str) -> Frame:
    return Frame(text, text, "default", ("default", text), text)


def survey_of(text: str) -> Survey:
    found = Survey()
    found.add(Candidate(1, text, JobState.FAILED))
    return found


def listed(text: str) -> jobs.JobList:
    which = jobs.Filter((JobState.FAILED,), text, text)
    return jobs.JobList(which, [record_of(text)], "next", False, COUNTS, [text], text)


def runs_of(text: str) -> list[JournalRun]:
    nodes = ((UUID(int=1), text), (UUID(int=2), "south"))
    return [run for node in nodes for run in packed([decision(limited_by=text)], *node)]


def hours_of(text: str) -> list[ComparedHour]:
    at = datetime(2026, 11, 20, 9, tzinfo=UTC)
    was, model = HourFigures(0.02, 1.2, 3.0), HourFigures(0.0, 1.3, 3.0, 7_200.4)
    return [
        ComparedHour(at, skipped=text),
        ComparedHour(at + timedelta(hours=1), 3600.0, 3, was, model),
        ComparedHour(at + timedelta(hours=2), 3600.0, 1_250, was, model, attrs.evolve(model)),
    ]


PAGES: dict[str, Callable[[str], View]] = {
    "overview": lambda text: overview.overview(framed(text), overview_of(text)),
    "jobs": lambda text: jobs.jobs(framed(text), listed(text)),
    "question": lambda text: question(
        framed(text), BulkRequest(Action.RESUME, listed(text).which, until_id=7), survey_of(text)
    ),
    "job": lambda text: job.job(framed(text), job_of(text)),
    "nodes": lambda text: nodes.nodes(framed(text), nodes_of(text)),
    "scaling": lambda text: scaling.scaling(
        framed(text), scaling.ScalingData(crew_named(text), (decision(limited_by=text),))
    ),
    "journal": lambda text: scaling.scaling(
        framed(text), scaling.ScalingData(crew_named(text), (decision(),), runs=runs_of(text))
    ),
    "hours": lambda text: scaling.scaling(
        framed(text), scaling.ScalingData(crew_named(text), (decision(),), hours=hours_of(text))
    ),
    "refusal": lambda text: layout.refusal_view(framed(text), HTTPStatus.NOT_FOUND, text),
    "sign in": lambda text: layout.sign_in_view(text, wrong=True),
}


class Skeleton(HTMLParser):
    """The elements and the names of their attributes; and all links."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append((tag, tuple(name for name, _ in attrs)))
        self.links += [v or "" for name, v in attrs if name in ("href", "src", "action")]

    def handle_endtag(self, tag: str) -> None:
        self.parts.append((f"/{tag}", ()))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def skeleton(page: str, text: str) -> Skeleton:
    found = Skeleton()
    found.feed(document(framed(text), PAGES[page](text)))
    return found


@pytest.mark.parametrize("page", PAGES)
@given(text=TEXTS)
def test_no_text_changes_what_a_page_is_made_of(page: str, text: str) -> None:
    assert skeleton(page, text).parts == skeleton(page, "x").parts


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("text", NASTY)
def test_hostile_texts_stay_texts(page: str, text: str) -> None:
    found = skeleton(page, text)
    assert found.parts == skeleton(page, "x").parts
    assert all(one.startswith(("/", "#")) for one in found.links)
    document(framed(text), PAGES[page](text)).encode()


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_inline_and_nothing_comes_from_elsewhere(page: str) -> None:
    html = document(framed("x"), PAGES[page]("x"))
    found = skeleton(page, "x")
    names = {name for _, attributes in found.parts for name in attributes}
    assert not {name for name in names if name.startswith("on") or name == "style"}
    assert html.count("<script") == 1
    assert "<style" not in html


@given(TEXTS)
def test_an_escaped_text_is_plain(text: str) -> None:
    shown = escaped(text)
    assert not set(shown) & set("<>\"'\x00\u202e")
    shown.encode()


def test_only_what_is_made_here_is_markup() -> None:
    assert el("p", "<b>", el("b", 5), None, ["a", join("&")]).text == (
        "<p>&lt;b&gt;<b>5</b>a&amp;</p>"
    )
    assert el("input", name="a", value='"', checked=True, list=None).text == (
        '<input name="a" value="&quot;" checked>'
    )
    assert link(address("/x", kind="a&b", state=["p", "q"], none=None, no="")).text == (
        '<a href="/x?kind=a%26b&amp;state=p&amp;state=q"></a>'
    )


def test_the_overview_stays_small_with_many_kinds_workers_and_tenants() -> None:
    seen = overview_of("x")
    seen = attrs.evolve(
        seen,
        workers=[WorkerView(n, "busy", n, "k" * 200, float(n)) for n in range(1, 501)],
        decisions=[decision(float(n), hired=1, limited_by="max") for n in range(1000)],
        tenants=[crew_named(f"{'t' * 50}{n}") for n in range(300)],
    )
    frame = Frame("n" * 100, "1", tenants=[one.name for one in seen.tenants])
    html = document(frame, overview.overview(frame, seen))
    assert len(html.encode()) <= BYTES_MAX
    assert "and 480 busy workers more" in html


def test_remarks_are_shown_with_their_commands_but_not_the_pause_a_second_time() -> None:
    said = ("PAUSED  by ann: `musterd queue resume`", "FAILING mail (3 of 3): <b>; `musterd jobs`")
    parts = overview.parts_of(framed("x"), attrs.evolve(overview_of("x"), remarks=said))
    assert parts["remarks"].text == (
        '<ul class="notice warn plain"><li><strong>FAILING</strong> mail (3 of 3): &lt;b&gt;;'
        " <code>musterd jobs</code></li></ul>"
    )
    assert overview.parts_of(framed("x"), overview_of("x"))["remarks"].text == ""


def test_a_list_of_ten_thousand_kinds_is_a_short_one() -> None:
    seen = attrs.evolve(listed("x"), kinds=[f"kind{n}" for n in range(10_000)])
    html = document(framed("x"), jobs.jobs(framed("x"), seen))
    assert len(html.encode()) <= BYTES_MAX


def test_large_values_are_cut_and_say_so() -> None:
    record = attrs.evolve(record_of("x"), payload=json.dumps("y" * 1_000_000), error=None)
    view = job.job(framed("x"), attrs.evolve(job_of("x"), record=record))
    html = document(framed("x"), view)
    assert len(html) < 2 * BYTES_MAX
    assert "more characters" in html


def test_deep_values_are_shown_as_they_stand() -> None:
    deep = "[" * 5000 + "]" * 5000
    assert job.pretty(deep) == deep
    assert job.pretty("no json") == "no json"
    assert job.pretty('{"a": "ä"}') == '{\n  "a": "ä"\n}'


def test_whoever_may_only_look_sees_no_button_that_acts() -> None:
    frame = attrs.evolve(framed("x"), may_act=False, holder="")
    for page in ("overview", "jobs", "job"):
        makers = {
            "overview": lambda: overview.overview(frame, overview_of("x")),
            "jobs": lambda: jobs.jobs(frame, listed("x")),
            "job": lambda: job.job(frame, job_of("x")),
        }
        html = document(frame, makers[page]())
        assert 'method="post"' not in html, page
        assert 'type="checkbox" name="id"' not in html


def test_a_job_offers_what_its_state_allows() -> None:
    frame = Frame("n", "1")
    for state, wanted in (
        (JobState.FAILED, {"resume", "clear"}),
        (JobState.QUEUED, {"cancel", "pause"}),
        (JobState.SUCCEEDED, set[str]()),
    ):
        seen = attrs.evolve(job_of("x"), record=record_of("x", state))
        html = document(frame, job.job(frame, seen))
        offered = {one.value for one in Action if f'action="/ui/jobs/7/{one.value}"' in html}
        assert offered == wanted


def test_a_line_has_gaps_where_nothing_is_known() -> None:
    text = sparkline([1, 2, None, 4.0], "jobs").text
    assert text.count("M") == 4  # two stretches, as areas and as lines
    assert "<title>jobs</title>" in text
    assert "no samples yet" in sparkline([None], "jobs").text


def test_every_limit_has_its_words() -> None:
    names = {name for one in get_args(Limit) for name in (get_args(one) or (one,))}
    assert set(LIMITS) == names | set(get_args(Bound))
    assert reason_words(decision(limited_by="max")) == (
        "9 due jobs seen, 3 running: 12 workers wanted; max_count allows no more"
    )
    assert reason_words(None) == "no decision has been made yet"


def test_looks_that_changed_nothing_are_one_line() -> None:
    quiet = [decision(float(n), limited_by="max") for n in range(10)]
    found = stretches([*quiet, decision(10.0, hired=1), *quiet])
    assert [one.looks for one in found] == [10, 1, 10]


def test_the_page_has_the_rows_of_all_nodes() -> None:
    north = packed(
        [attrs.evolve(decision(float(n)), due=n % 2 + 1) for n in range(6)], UUID(int=1), "north"
    )
    south = packed([decision(n + 0.5) for n in range(4)], UUID(int=2), "south")
    found = stretches_of(sorted([*north, *south], key=lambda run: run.at))
    assert [(one.node, one.looks, one.last.at) for one in found] == [
        ("north", 6, 5.0),
        ("south", 4, 3.5),
    ]
    data = scaling.ScalingData(crew_named("x"), (decision(),), runs=[*north, *south])
    shown = document(framed("x"), scaling.scaling(framed("x"), data))
    assert "Decisions of all nodes" in shown
    assert "south" in shown


def test_the_page_has_the_hours_beside_the_model_and_the_candidate_where_there_is_one() -> None:
    def shown(count: int) -> str:
        data = scaling.ScalingData(crew_named("x"), (decision(),), hours=hours_of("so")[:count])
        return document(framed("x"), scaling.scaling(framed("x"), data))

    whole = shown(3)
    assert whole.index("1,250") < whole.index("not compared: so")  # the newest first
    for words in ("8 % off", "too few jobs to tell", "p95 1.3 s", "7,200 worker-seconds"):
        assert words in whole
    assert '<th scope="col">candidate</th>' in whole
    assert '<th scope="col">candidate</th>' not in shown(2)
    assert "no hour has been compared yet" in shown(0)


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ("/ui/jobs?kind=a", "/ui/jobs?kind=a"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/a\r\nSet-Cookie: x", "/"),
        ("/\u00fc", "/"),
        ("", "/"),
    ],
)
def test_after_signing_in_nobody_is_led_elsewhere(place: str, wanted: str) -> None:
    assert layout.after_sign_in(place) == wanted
