"""`GET /history`: steps, what is in them, and what is refused."""

from __future__ import annotations

import pytest

from musterd.store.history import EndedJobs, Mark, Past, PastKind, PastQueue, QueueLook, counted
from musterd.web.picture import Span, history_object, picture_of, span_of
from tests.support.web_scene import serving

KEEP_SECONDS = 48 * 3600.0
NOW = 1_800_000_000.0
LOOK = QueueLook(5, 1.25, 3, 7, 8, 22.5)


def test_steps_are_as_short_as_reaches_back_so_far() -> None:
    for ago, step in ((900, 15), (3600, 15), (6 * 3600, 60), (48 * 3600, 600), (90 * 3600, 600)):
        assert span_of(NOW, NOW - ago, None, None, KEEP_SECONDS).step == step


@pytest.mark.parametrize(("wanted", "step"), [(1, 15), (15, 15), (16, 60), (90, 600), (700, 1200)])
def test_a_step_is_no_shorter_than_wanted(wanted: int, step: int) -> None:
    span = span_of(NOW, NOW - 900, None, wanted, KEEP_SECONDS)
    assert span.step == step
    assert span.step % span.kept_step == 0


def test_a_span_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="since: wanted a moment before until"):
        span_of(NOW, NOW, NOW, None, KEEP_SECONDS)
    with pytest.raises(ValueError, match="a step of "):
        span_of(NOW, NOW - 1e9, None, None, KEEP_SECONDS)


def test_every_step_is_there_once_whatever_is_known() -> None:
    span = Span(NOW - 61, NOW, 15)
    picture = picture_of(Past(), span)
    assert [point.at % 15 for point in picture.points] == [0] * 5
    assert picture.points[0].at <= span.since < picture.points[1].at
    assert all(point.look is None and point.ended == EndedJobs("") for point in picture.points)


def test_a_look_stands_for_as_long_as_it_says() -> None:
    first = int(NOW)
    resting = LOOK._replace(stands_seconds=45.0)
    past = Past([PastQueue(first, LOOK), PastQueue(first + 60, resting)])
    points = picture_of(past, Span(first, first + 150, 15)).points
    assert [point.look is not None for point in points] == [
        True, True, False, False, True, True, True, True, False, False,
    ]  # fmt: skip


def test_steps_of_several_rows_have_the_highest_and_the_sums() -> None:
    first = int(NOW) // 1200 * 1200
    past = Past(
        [PastQueue(first, LOOK), PastQueue(first + 600, LOOK._replace(depth=9, crew=1))],
        [
            PastKind(first, EndedJobs("a", 2, 1, waits=counted([0.5]))),
            PastKind(first, EndedJobs("b", 5)),
            PastKind(first + 600, EndedJobs("a", 3, 0, 1, 4, counted([0.25, 9.0]))),
            PastKind(first, EndedJobs("", 8, 1, waits=counted([0.5, 1]))),
            PastKind(first + 600, EndedJobs("", 3, 0, 1, 4, counted([0.25, 9.0]))),
        ],
    )
    picture = picture_of(past, Span(first, first + 1200, 1200))
    (point,) = picture.points
    assert point.look is not None
    assert (point.look.depth, point.look.crew) == (9, 3)
    assert point.ended[1:5] == (11, 1, 1, 4)
    assert {kind: each[0].ended.succeeded for kind, each in picture.kinds.items()} == {
        "a": 5, "b": 5,
    }  # fmt: skip
    assert sum(picture.kinds["a"][0].ended.waits) == 3
    shown = history_object(picture)
    assert isinstance(shown["points"], list)
    assert shown["points"][0]["wait_p50_seconds"] == pytest.approx(0.6, rel=0.3)
    assert shown["points"][0]["run_p95_seconds"] is None


async def test_the_answer_has_what_was_written() -> None:
    async with serving() as web:
        await web.engine.history.look(LOOK)
        ended = EndedJobs("report", 4, 1, waits=counted([0.1]), runs=counted([2.0]))
        marks = [Mark("node.started", "n1", "1.2.3")]
        await web.engine.history.add([ended, EndedJobs("", 6, 1)], marks)
        found = (await web.get("/history?since=-15m")).json
        alone = (await web.get("/history?step=600")).json
    assert found["step_seconds"] == 15
    assert 61 <= len(found["points"]) <= 62
    assert sum(point["succeeded"] for point in found["points"]) == 6
    assert [one["kind"] for one in found["kinds"]] == ["report"]
    assert [(one["what"], one["said"]) for one in found["marks"]] == [("node.started", "1.2.3")]
    seen = [point for point in found["points"] if point["depth"] is not None]
    assert [seen[0][name] for name in ("depth", "oldest_seconds", "crew", "wish", "max_count")] == [
        5, 1.25, 3, 7, 8,
    ]  # fmt: skip
    assert alone["step_seconds"] == 600
    assert 6 <= len(alone["points"]) <= 8


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("since=yesterday", "since: 'yesterday' is no time"),
        ("since=1969-07-20T20:17:00Z", "wanted a time since 1970"),
        ("step=0", "step: found '0', wanted a whole number of seconds"),
        ("since=-1h&until=-2h", "since: wanted a moment before until"),
        ("since=1990-01-01T00:00:00Z", "wanted at most 2,000"),
    ],
)
async def test_what_is_wrong_is_said(query: str, said: str) -> None:
    async with serving() as web:
        answer = await web.get(f"/history?{query}")
    assert answer.status == 422
    assert said in answer.json["detail"]
