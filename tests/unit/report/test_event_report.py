"""Events in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from musterd.console.verbs.events import event_line
from musterd.console.verbs.jobs import progress_bar
from musterd.store.event_types import EVENTS, event_type, event_words
from musterd.store.events import Event

AT = datetime(2030, 1, 1, 9, 0, 0, 123999, tzinfo=UTC)
ERROR = {"type": "failure", "message": "the disk\nis full"}


def made(type_: str, **data: Any) -> Event:
    job_id, kind = (7, "report") if type_.startswith("job.") else (None, None)
    return Event(1, AT, type_, job_id, kind, None, data)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (made("job.enqueued"), ""),
        (made("job.enqueued", state="pending"), "held"),
        (made("job.started", attempt=2, node="n", worker=3), "attempt 2 by worker 3 on n"),
        (made("job.progress", overall=42, note="half"), "42 %: half"),
        (
            made("job.progress", overall=42, phase="process", progress=25.0, note=None),
            "42 %, process at 25 %",
        ),
        (made("job.phase_completed", phase="load", overall=33), "load is done, 33 % in all"),
        (made("job.failed", attempt=1, error=ERROR), "attempt 1, failure: the disk\\nis full"),
        (
            made("job.retrying", attempt=1, error=ERROR, run_at="2030-01-01T09:00:01Z"),
            "attempt 1, again at 2030-01-01T09:00:01Z, failure: the disk\\nis full",
        ),
        (made("job.requeued", attempt=1, outcome="lost", reason="its lease ran out"),
            "attempt 1, lost, its lease ran out"),
        (made("job.canceled", reason="by hand"), "by hand"),
        (made("job.webhook_delivered", url="https://x", attempts=2, status=204),
            "https://x, try 2, answered 204"),
        (made("node.started", node="n", version="1"), "n, musterd 1"),
        (made("worker.hired", node="n", worker=1), "worker 1 on n"),
        (made("scale.decided", node="n", size_before=2, desired=4, hired=2, retired=0),
            "n, 2 -> 4, hired 2"),
        (made("config.reloaded", node="n", result="applied", changed=["workers.max_count"]),
            "n, applied, workers.max_count"),
        (made("job.new_in_a_later_version", a=1, b="x"), "a=1, b=x"),
    ],
)  # fmt: skip
def test_the_data_are_said_in_words(event: Event, words: str) -> None:
    assert event_words(event) == words


@pytest.mark.parametrize("type_", EVENTS)
def test_every_type_can_be_said_whatever_its_data_lack(type_: str) -> None:
    event_words(made(type_))
    event_words(made(type_, **dict.fromkeys(EVENTS[type_], None)))
    event_words(made(type_, **dict.fromkeys(EVENTS[type_], "x")))


def test_a_line_is_one_line_whatever_is_in_it() -> None:
    line = event_line(
        made("job.failed", attempt=1, error={"type": "x", "message": "a\x1b[2Jb" * 90})
    )
    assert "\x1b[2J" not in line
    assert (
        "2030-01-01 09:00:00.123Z  job.failed           job 7      report  attempt 1, x: " in line
    )
    assert event_line(made("node.stopped", node="n", version="1")) == (
        "2030-01-01 09:00:00.123Z  node.stopped  n, musterd 1"
    )


@pytest.mark.parametrize("percent", [0, 1, 50, 99, 100])
def test_the_bar_is_full_at_the_end_only(percent: int) -> None:
    bar, _, words = progress_bar(percent).partition(" ")
    assert len(bar) == 20
    assert (bar == "█" * 20) == (percent == 100)
    assert words == f"{percent} %"


@pytest.mark.parametrize("text", ["job", "job.failed", "node", "config.reloaded"])
def test_types_and_groups_are_known(text: str) -> None:
    assert event_type(text) == text


def test_a_type_that_is_none_is_refused_with_a_guess() -> None:
    with pytest.raises(ValueError, match=r"job\.faild.*job\.failed"):
        event_type("job.faild")
    with pytest.raises(ValueError, match="or a group: job, worker"):
        event_type("zzz")
