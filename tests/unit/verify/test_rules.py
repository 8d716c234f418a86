"""Each rule: a log that breaks it, and logs that look as if they did and are lawful."""

from __future__ import annotations

import pytest

from musterd.console.verify.rules import Rule
from tests.unit.verify.telling_logs import broken, judged, log

RUN = ("1 enqueued", "1 started 1")

BREAKING = [
    # one hand
    ([*RUN, "1 started 2 node=south"], ("one hand", 1, (2, 3))),
    ([*RUN, "1 assigned 2"], ("one hand", 1, (2, 3))),
    (["1 enqueued", "1 assigned 1", "1 assigned 2"], ("one hand", 1, (2, 3))),
    (["1 enqueued", "1 assigned 1", "1 started 2"], ("one hand", 1, (2, 3))),
    ([*RUN, "1 started 1"], ("one hand", 1, (2, 3))),
    # attempts
    (["1 enqueued", "1 started 2"], ("attempts", 1, (1, 2))),
    ([*RUN, "1 requeued 1 outcome=lost", "1 started 1"], ("attempts", 1, (3, 4))),
    ([*RUN, "1 requeued 1 outcome=lost", "1 assigned 3"], ("attempts", 1, (3, 4))),
    (["1 enqueued", "1 started"], ("attempts", 1, (1, 2))),
    # holder
    (["1 enqueued", "1 succeeded 1"], ("holder", 1, (1, 2))),
    ([*RUN, "1 succeeded 2"], ("holder", 1, (2, 3))),
    ([*RUN, "1 canceled 3"], ("holder", 1, (2, 3))),
    ([*RUN, "1 requeued 1 outcome=lost", "1 succeeded 1"], ("holder", 1, (3, 4))),
    ([*RUN, "1 paused 1", "1 failed 1"], ("holder", 1, (3, 4))),
    (["1 enqueued", "1 progress overall=4"], ("holder", 1, (1, 2))),
    ([*RUN, "1 succeeded 1", "1 progress overall=4"], ("holder", 1, (3, 4))),
    (["1 enqueued", "1 assigned 1", "1 started 1 node=south"], ("holder", 1, (2, 3))),
    ([*RUN, "1 phase_completed 2 phase=a"], ("holder", 1, (2, 3))),
    # edges
    (["1 enqueued state=pending", "1 started 1"], ("edges", 1, (1, 2))),
    (["1 enqueued state=pending", "1 paused"], ("edges", 1, (1, 2))),
    (["1 enqueued", "1 released"], ("edges", 1, (1, 2))),
    ([*RUN, "1 resumed"], ("edges", 1, (2, 3))),
    ([*RUN, "1 paused 1", "1 started 2"], ("edges", 1, (3, 4))),
    ([*RUN, "1 paused 1", "1 paused 1"], ("edges", 1, (3, 4))),
    ([*RUN, "1 failed 1", "1 started 2"], ("edges", 1, (3, 4))),
    ([*RUN, "1 succeeded 1", "1 resumed"], ("edges", 1, (3, 4))),
    ([*RUN, "1 succeeded 1", "1 cleared"], ("edges", 1, (3, 4))),
    (["1 enqueued", "1 cleared"], ("edges", 1, (1, 2))),
    # ends
    ([*RUN, "1 succeeded 1", "1 succeeded 1"], ("ends", 1, (3, 4))),
    ([*RUN, "1 failed 1", "1 canceled 1"], ("ends", 1, (3, 4))),
    ([*RUN, "1 succeeded 1", "1 retrying 1 run_at=1"], ("ends", 1, (3, 4))),
    ([*RUN, "1 succeeded 1", "1 paused 1"], ("ends", 1, (3, 4))),
    ([*RUN, "1 succeeded 1", "1 started 2"], ("ends", 1, (3, 4))),
    (["1 enqueued", "1 canceled", "1 canceled"], ("ends", 1, (2, 3))),
    # canceled
    (["1 enqueued", "1 canceled", "1 started 1"], ("canceled", 1, (2, 3))),
    ([*RUN, "1 canceled 1", "1 assigned 2"], ("canceled", 1, (3, 4))),
    # due
    ([*RUN, "1 retrying 1 run_at=60", "1 started 2 at=59"], ("due", 1, (3, 4))),
    ([*RUN, "1 retrying 1 run_at=60", "1 assigned 2 at=59.9"], ("due", 1, (3, 4))),
    # target
    (["101 enqueued", "102 enqueued", "101 started 1", "102 started 1"], ("target", 102, (3, 4))),
    (
        [
            "101 enqueued",
            "102 enqueued",
            "101 started 1",
            "101 retrying 1 run_at=9",
            "102 started 1",
        ],
        ("target", 102, (3, 5)),
    ),
    (
        ["101 enqueued", "102 enqueued", "101 assigned 1", "101 requeued 1", "102 started 1"],
        ("target", 102, (3, 5)),
    ),
    (
        ["101 enqueued", "102 enqueued", "101 started 1", "101 failed 1", "102 started 1"],
        ("target", 102, (3, 5)),
    ),
    # halted
    (
        ["101 enqueued", "102 enqueued", "101 paused at=3", "102 started 1 at=14"],
        ("halted", 102, (3, 4)),
    ),
    # draining
    (
        ["- started node=north", "1 enqueued", "- draining node=north at=3", "1 started 1 at=14"],
        ("draining", 1, (3, 4)),
    ),
    # phases
    ([*RUN, "1 phase_completed 1 phase=a", "1 phase_completed 1 phase=a"], ("phases", 1, (2, 4))),
    (
        [
            *(*RUN, "1 phase_completed 1 phase=a", "1 failed 1", "1 resumed", "1 started 2"),
            "1 phase_completed 2 phase=a",
        ],
        ("phases", 1, (6, 7)),
    ),
    # webhooks
    ([*RUN, "1 webhook_delivered url=u"], ("webhooks", 1, (2, 3))),
    (["1 enqueued", "1 webhook_failed url=u"], ("webhooks", 1, (1, 2))),
    # deleted
    ([*RUN, "1 stale state=running"], ("deleted", 1, (2, 3))),
    ([*RUN, "1 deleted state=running"], ("deleted", 1, (2, 3))),
    ([*RUN, "1 succeeded 1", "1 deleted state=succeeded"], ("deleted", 1, (3, 4))),
    ([*RUN, "1 deleted state=running by=ops"], ("deleted", 1, (2, 3))),
    ([*RUN, "1 succeeded 1", "1 stale state=failed"], ("deleted", 1, (3, 4))),
    (
        ["101 enqueued", "101 started 1", "101 failed 1", "101 stale state=failed"],
        ("deleted", 101, (3, 4)),
    ),
    # made
    (["1 enqueued", "1 enqueued"], ("made", 1, (1, 2))),
    (["1 started 1"], ("made", 1, (1,))),
    (
        [
            *(*RUN, "1 succeeded 1", "1 stale state=succeeded", "1 deleted state=succeeded"),
            "1 resumed",
        ],
        ("made", 1, (6,)),
    ),
]

LAWFUL = {
    "a start that was told late": ["1 enqueued", "1 assigned 1", "1 started 1", "1 succeeded 1"],
    "an end without a start": ["1 enqueued", "1 assigned 1", "1 failed 1"],
    "lost, and tried again": [*RUN, "1 requeued 1 outcome=lost", "1 started 2", "1 succeeded 2"],
    "a retry on the very moment": [*RUN, "1 retrying 1 run_at=60", "1 started 2 at=60"],
    "a retry that somebody resumed early": [
        *(*RUN, "1 retrying 1 run_at=60", "1 paused 1", "1 resumed", "1 started 2"),
        "1 succeeded 2",
    ],
    "held, then released": ["1 enqueued state=pending", "1 released", "1 started 1"],
    "canceled while held": ["1 enqueued state=pending", "1 canceled"],
    "paused, then canceled": [*RUN, "1 paused 1", "1 canceled 1"],
    "a failed job goes on, twice": [
        *(*RUN, "1 failed 1", "1 resumed", "1 started 2", "1 failed 2", "1 cleared", "1 resumed"),
        *("1 started 3", "1 succeeded 3"),
    ],
    "a target is passed on": [
        *("101 enqueued", "102 enqueued", "101 started 1", "101 succeeded 1", "102 started 1"),
        *("102 canceled 1", "201 enqueued", "201 started 1"),
    ],
    "who has the target goes on while it is halted": [
        *("101 enqueued", "102 enqueued", "101 started 1", "102 paused", "101 requeued 1"),
        "101 started 2 at=100",
    ],
    "a cleared job lets its target go": [
        *("101 enqueued", "102 enqueued", "101 started 1", "101 failed 1", "101 cleared"),
        *("102 started 1", "102 succeeded 1", "101 resumed", "101 started 2"),
    ],
    "a claim that crossed a pause": [
        *("101 enqueued", "102 enqueued", "101 paused", "102 started 1"),
    ],
    "a resumed job halts no more": [
        *("101 enqueued", "102 enqueued", "101 paused at=3", "101 resumed", "102 started 1 at=99"),
    ],
    "a deleted job, and its message": [
        *(*RUN, "1 succeeded 1", "1 webhook_delivered url=u", "1 stale state=succeeded"),
        *("1 deleted state=succeeded", "1 webhook_delivered url=u"),
    ],
    "a job that somebody wanted deleted": [
        *RUN,
        "1 succeeded 1",
        "1 deleted state=succeeded by=ops",
    ],
    "a message of an end that was taken back": [
        *(*RUN, "1 failed 1", "1 resumed", "1 webhook_failed url=u", "1 started 2"),
    ],
    "a node was restarted": [
        *("- started node=north", "- draining node=north", "- stopped node=north"),
        *("- started node=north", "1 enqueued", "1 started 1 at=99"),
    ],
    "one daemon takes over from another of its name": [
        *("- started node=north", "- started node=north", "- draining node=north", "1 enqueued"),
        "1 started 1 at=99",
    ],
    "a node that was killed while it drained": [
        *("- started node=north", "- draining node=north", "- started node=north", "1 enqueued"),
        "1 started 1 at=99",
    ],
    "its start was not told": ["- draining node=north", "1 enqueued", "1 started 1 at=99"],
    "a claim on its way when the drain began": [
        *("- started node=north", "1 enqueued", "- draining node=north", "1 started 1"),
    ],
    "phases of two jobs": [
        *(*RUN, "1 phase_completed 1 phase=a", "1 phase_completed 1 phase=b", "2 enqueued"),
        *("2 started 1", "2 phase_completed 1 phase=a"),
    ],
    "what is new": [*RUN, "1 blessed by=somebody", "1 succeeded 1", "1 blessed by=somebody"],
}


@pytest.mark.parametrize(("lines", "told"), BREAKING)
def test_what_breaks_a_rule_is_told_once(
    lines: list[str], told: tuple[str, int, tuple[int, ...]]
) -> None:
    assert broken(*lines) == [told]


def test_each_rule_of_the_log_is_broken_somewhere() -> None:
    seen = {told[0] for _, told in BREAKING} | {Rule.LOG}
    assert seen == set(Rule) - {Rule.TABLE, Rule.COUNTS, Rule.PLACES}
    assert all(rule.says and rule.advice for rule in Rule)


@pytest.mark.parametrize("name", LAWFUL)
def test_what_is_lawful_is_no_violation(name: str) -> None:
    assert broken(*LAWFUL[name]) == []


@pytest.mark.parametrize("name", LAWFUL)
def test_a_log_that_was_cut_off_accuses_nobody(name: str) -> None:
    """Wherever it begins."""
    whole = log(*LAWFUL[name])
    for start in range(1, len(whole)):
        judge = judged(whole[start:])
        assert judge.findings.holds, (start, judge.findings.violations)
        assert judge.first == start + 1
        assert judge.position == len(whole)


def test_a_cut_log_still_tells_what_it_shows() -> None:
    assert broken("1 started 2", "1 started 3", first=70) == [("one hand", 1, (70, 71))]
    assert broken("1 succeeded 2", "1 succeeded 2", first=70) == [("ends", 1, (70, 71))]
    assert broken("101 started 4", "102 started 1", first=9) == [("target", 102, (9, 10))]


def test_positions_follow_each_other() -> None:
    whole = log("1 enqueued", "1 started 1", "1 succeeded 1", "2 enqueued", "2 canceled")
    hole = judged([*whole[:1], *whole[3:]]).findings
    assert [(one.rule, one.positions) for one in hole.violations] == [("log", (1, 4))]
    assert "position 2 to 3 is missing" in hole.violations[0].story
    doubled = judged([*whole[:2], *whole[1:]]).findings
    assert [(one.rule, one.positions) for one in doubled.violations] == [("log", (2,))]
    swapped = judged([whole[0], whole[2], whole[1], *whole[3:]]).findings
    assert {one.rule for one in swapped.violations} == {Rule.LOG}


def test_one_deed_that_is_done_often_is_told_often_but_not_for_ever() -> None:
    judge = judged(log(*[f"{job} started 1" for job in range(1_001, 1_151)]))
    assert judge.findings.violated == {Rule.MADE: 150}
    assert len(judge.findings.violations) == 100
