"""A decision in sentences: all that it says, with its numbers, whatever is missing."""

from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.console.explain.anew import LINE, Anew
from musterd.console.explain.sentences import REASONS, anew_sentences, head, sentences, since_then
from musterd.manager.node.status import Decision
from musterd.manager.scaling.decision import Limit, Plan
from musterd.manager.scaling.journal import decision_of
from musterd.manager.scaling.latency import Because, WantedCrew
from musterd.store.scaling_journal import FIELDS, JournalRun

DRAIN = "to keep the promises of what waits"
AT = datetime(2030, 5, 6, 3, 12, tzinfo=UTC)
SAID: dict[str, Any] = {
    **dict.fromkeys(FIELDS), "policy": "demand", "due": 9, "share": 9, "busy": 2, "size_before": 2,
    "raw_wish": 11, "because": "demand", "desired": 8, "hired": 6, "taken_back": 0, "retired": 0,
    "limited_by": "max", "default_count": 2, "max_count": 8, "others_free": 0,
}  # fmt: skip


def run(seconds: float = 0, ticks: int = 1, **more: Any) -> JournalRun:
    until = AT + timedelta(seconds=seconds)
    return JournalRun(UUID(int=1), "north", AT, until, ticks, {**SAID, **more})


def test_what_was_seen_wished_limited_and_done() -> None:
    assert sentences(run()) == [
        "9 jobs were due, with 2 jobs in hand and 2 workers here.",
        "`demand` wished for 11 workers, one for each due job and each job in hand: 9 + 2.",
        "Limited by `max`: max_count was 8, and it may have no more.",
        "Done: hired 6; the crew went from 2 workers to 8.",
    ]


def test_what_latency_wished_by() -> None:
    said = sentences(
        run(
            policy="latency", because="drain", raw_wish=3, desired=3, hired=1, limited_by=None,
            decided_by={"kind": "thumbnail", "job": 601}, slack_seconds=-1.5, share=4,
            others_free=12, room=30,
        )
    )  # fmt: skip
    assert said == [
        "9 jobs were due, 4 of them this node's share, with 2 jobs in hand and 2 workers here.",
        "The other nodes could have 12 workers more.",
        "On all nodes together 30 jobs more could run at once.",
        f"`latency` wished for 3 workers {DRAIN}; job 601, a thumbnail, took most.",
        "The promise was broken: the worst waiting job was 1.5 s late.",
        "Nothing stood in the way.",
        "Done: hired 1; the crew went from 2 workers to 3.",
    ]


def test_what_was_not_seen() -> None:
    said = sentences(
        run(due=None, share=None, raw_wish=None, because=None, limited_by="no_observation",
            desired=2, hired=0)
    )  # fmt: skip
    assert said[0] == "The queue could not be observed; there were 2 jobs in hand and 2 workers."
    assert said[1] == "Without that there was no wish."
    assert said[-1] == "Done: nothing; the crew stayed at 2 workers."


def test_a_count_that_stopped_is_told() -> None:
    assert sentences(run(due=17, share=17))[0].startswith("17 jobs or more were due")
    assert sentences(run(due=1, share=1))[0].startswith("1 job was due")


@pytest.mark.parametrize("limit", get_args(Limit))
def test_every_limit_has_words(limit: Any) -> None:
    names = get_args(limit) or (limit,)
    for name in names:
        (said,) = (one for one in sentences(run(limited_by=name)) if one.startswith("Limited"))
        assert said.startswith(f"Limited by `{name}`: ")
        assert said.removesuffix(".").partition(": ")[2] not in ("", name)


def test_the_counts_of_hours_are_told() -> None:
    said = sentences(run(limited_by="hours:night", default_count=0, max_count=2))
    assert said[2].startswith("Limited by `hours:night`: ")
    assert said[2].endswith("default_count was 0, max_count was 2.")


def test_every_reason_has_words() -> None:
    assert set(REASONS) == set(get_args(Because))


def test_the_candidate_is_told() -> None:
    candidate = {"desired": 3, "raw_wish": 4, "because": "drain", "limited_by": "max"}
    assert sentences(run(candidate=candidate))[-1] == (
        "[scaling.candidate] would have made it 3, having wished for 4, limited by max."
    )


@given(st.fixed_dictionaries({}, optional={
    name: st.none() for name in (
        "due", "share", "raw_wish", "because", "limited_by", "default_count", "max_count",
        "others_free",
    )
}))  # fmt: skip
def test_any_field_may_be_missing(missing: dict[str, Any]) -> None:
    assert all(said.endswith((".", "!")) for said in sentences(run(**missing)))
    assert "None" not in " ".join(sentences(run(**missing)))


def test_the_head_says_when_and_how_long_ago() -> None:
    assert head(run(), AT) == "north at 2030-05-06T03:12:00.000Z:"
    assert head(run(8, 9), None) == (
        "north at 2030-05-06T03:12:00.000Z, the first of 9 like ones until"
        " 2030-05-06T03:12:08.000Z:"
    )
    late = AT + timedelta(minutes=5)
    assert head(run(), late).endswith(", the last decision before, 5 m earlier:")


def test_why_there_is_no_later_one_is_said() -> None:
    late = AT + timedelta(minutes=5)
    calm = run(due=0, share=0, busy=0, raw_wish=0, desired=2, limited_by="min", hired=0)
    assert "rests until there is news" in next(since_then(calm, late))
    assert "it had stopped, or hung" in next(since_then(run(), late))
    assert list(since_then(calm, AT + timedelta(seconds=2))) == list(since_then(calm, None)) == []


def decided(plan: Plan | None, *lacks: str, repeats: bool = True) -> list[str]:
    one: Decision = decision_of(run())
    anew = Anew(WantedCrew(None), plan, lacks, repeats)
    return anew_sentences(one, anew, ["workers.max_count=12"])


def test_what_else_would_have_come_of_it() -> None:
    (said,) = decided(Plan(11, 11, None))
    assert (
        said == "With workers.max_count=12 it would have made it 11, having wished for 11:"
        " instead of 8."
    )
    assert decided(Plan(11, 8, "max"))[0].endswith("limited by max: the same.")
    (cannot, why) = decided(None, LINE)
    assert cannot == "With workers.max_count=12: that cannot be told from the journal."
    assert why.startswith("The journal does not hold the line of jobs")
    assert "comes out otherwise" in decided(Plan(11, 11, None), repeats=False)[1]
