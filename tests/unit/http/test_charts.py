"""Charts are drawn where their values are, with gaps where nothing is known."""

from __future__ import annotations

import json
import re
from html import unescape
from weakref import ref

import attrs
import pytest

from musterd.store.history import EndedJobs, Mark, PastMark, QueueLook, counted
from musterd.web.pages.chart import HEIGHT, WIDTH, Chart, Line, Panel, chart, points_of, top_of
from musterd.web.pages.layout import Frame
from musterd.web.pages.overview import parts_of
from musterd.web.pages.pictures import (
    KindRow,
    ended_chart,
    kinds_table,
    queue_chart,
    times_chart,
)
from musterd.web.picture import Picture, Point, Span
from tests.support.page_scene import overview_of

FIRST = 1_800_000_000
SPAN = Span(FIRST, FIRST + 60, 15)
FRAME = Frame("n1", "1")


def strokes(text: str, name: str) -> str:
    (found,) = re.findall(rf'<path d="([^"]*)" class="[^"]*" data-line="{name}">', text)
    return str(found)


def test_points_stand_where_their_values_are() -> None:
    line = Line("waiting", (0.0, 50.0, 100.0, 25.0), "run")
    assert list(points_of(line, 100.0)) == [
        [(0, HEIGHT), (333, 50.0), (667, 0.0), (WIDTH, 75.0)],
    ]


def test_what_is_not_known_is_a_gap_and_no_zero() -> None:
    line = Line("waiting", (None, 4.0, None, 2.0, 0.0), "run")
    assert list(points_of(line, 4.0)) == [[(250, 0.0)], [(750, 50.0), (1000, 100.0)]]


@pytest.mark.parametrize(
    ("high", "top"), [(0, 1), (1, 2), (3, 3), (7, 8), (11, 15), (90, 100), (101, 150)]
)
def test_the_axis_ends_at_a_round_number_that_holds_all(high: float, top: float) -> None:
    assert top_of(Panel("x", [Line("x", (0.0, high, None), "run")])) == top


def test_an_axis_of_parts_ends_at_a_part() -> None:
    panel = Panel("x", [Line("x", (0.013,), "run")], is_whole=False)
    assert top_of(panel) == pytest.approx(0.015)


def test_what_is_drawn_is_what_is_read_out() -> None:
    panel = Panel("Jobs", [Line("waiting", (1.0, None, 3.0, 4.0), "run filled")])
    marks = [PastMark(FIRST + 31.0, Mark("config.reloaded", "n<1>", "applied"))]
    text = chart(Chart("c", "About <it>", SPAN, [panel], marks)).text
    assert strokes(text, "waiting") == "M0 75L1 75M667 25L1000 0"
    (facts,) = re.findall(r'data-chart="([^"]*)"', text)
    assert json.loads(unescape(facts)) == {
        "first": FIRST, "step": 15, "lines": [["waiting", "1||3|4"]],
        "marks": [[FIRST + 31.0, "reload: n<1>, applied"]],
    }  # fmt: skip
    assert 'd="M667 0V100" class="mark"' in text
    assert "<it>" not in text
    assert "n<1>" not in text
    assert text.count("<tr>") == 5  # the same as a table
    assert "style=" not in text  # the policy would leave it out


def picture() -> Picture:
    looks = [QueueLook(n, 0.0, 2, 2 * n, 8, 22.5) for n in (0, 4, 2, 8)]
    ended = [EndedJobs("", 30 * n, 15 * n, 0, n, counted([0.1]), counted([2.0])) for n in range(4)]
    points = [Point(at, look, one) for at, look, one in zip(SPAN.begins, looks, ended, strict=True)]
    return Picture(SPAN, points)


def test_the_queue_and_the_crew_are_drawn_from_the_history() -> None:
    text = queue_chart(picture(), "1h").text
    assert strokes(text, "waiting") == "M0 100L333 50L667 75L1000 0"  # of 8
    assert strokes(text, "crew") == "M0 90L333 90L667 90L1000 90"  # of 20
    assert strokes(text, "wish") == "M0 100L333 60L667 80L1000 20"
    assert strokes(text, "at most") == "M0 60L333 60L667 60L1000 60"
    assert "latest: waiting 8, at most 8, wish 16, crew 2" in text


def test_rates_are_a_second_and_the_step_under_way_is_not_told() -> None:
    text = ended_chart(picture(), "1h").text
    assert strokes(text, "succeeded") == "M0 100L333 50L667 0"  # 0, 2, 4 of 4
    assert strokes(text, "failed") == "M0 100L333 75L667 50"
    assert "latest: succeeded 4/s, failed 2/s" in text


def test_times_are_quantiles() -> None:
    text = times_chart(picture(), "1h").text
    for name in ("wait p50", "wait p95", "run p50", "run p95"):
        assert strokes(text, name).count("L") == 3


def test_a_picture_is_drawn_once_for_all_looks_and_forgotten_with_it() -> None:
    one, equal = picture(), picture()
    for draw in (queue_chart, ended_chart, times_chart):
        assert draw(one, "1h") is draw(one, "1h")
        assert draw(one, "1h") is not draw(equal, "1h"), "what is read anew is drawn anew"
        assert "6 hours" in draw(one, "6h").text
    kept = ref(one)
    del one
    assert kept() is None


def test_without_a_store_nothing_is_drawn_and_that_is_said() -> None:
    for draw in (queue_chart, ended_chart, times_chart):
        assert "the store does not answer" in draw(None, "1h").text
    assert "the store does not answer" in kinds_table(FRAME, None).text


def test_kinds_show_what_waits_how_they_end_and_whether_the_promise_is_kept() -> None:
    rows = [
        KindRow("<calm>", 0, None, 900, 0, 0, 0.2, 0.1, 5.0),
        KindRow("late", 40, 9.0, 900, 90, 5, 0.2, 0.1, 5.0),
        KindRow("new", 1, 0.5),
    ]
    text = kinds_table(FRAME, rows).text
    assert text.index("late") < text.index("new") < text.index("&lt;calm&gt;")
    assert "<calm>" not in text
    assert '<span class="badge ill">within 5.0 s</span>' in text
    assert '<span class="badge well">within 5.0 s</span>' in text
    assert '<span class="ill" title="90 of 900">10 %</span>' in text
    assert "1/s" in text
    assert '<td data-label="rate">0/s</td>' in text


def test_the_candidate_is_beside_the_reason_of_the_crews_size() -> None:
    data = overview_of("x")
    imagined = {"desired": 5, "limited_by": "max", "raw_wish": 9, "because": "depth"}
    last = attrs.evolve(data.decisions[-1], candidate=imagined)
    shown = parts_of(FRAME, attrs.evolve(data, decisions=(last,)))["decisions"].text
    assert "The candidate would have 5 workers: max_count allows no more." in shown
    assert "candidate" not in parts_of(FRAME, data)["decisions"].text
