"""What is said to people and to programs who ask why."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import attrs
import pytest

from musterd.store.estimate import Estimate
from musterd.store.lifecycle import JobState
from musterd.store.nodes import Kinds, KnownKind, NodeRecord, node_object
from musterd.store.reasons import Code
from musterd.store.why import band_text, why, why_object, why_text
from musterd.store.why_facts import JobFacts, Leased, Line, TargetJob, WhyFacts
from musterd.web.api.openapi import REASON, WHY

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
NASTY = "a\x1b[31m\nb"

JOB = JobFacts(
    id=7, kind="report", state=JobState.QUEUED, priority=0, run_at=NOW, started_at=None,
    finished_at=None, attempt=0, node=None, worker=None, lease_expires_at=None, request=None,
    requested_at=None, reason=None, error=None, target=None, parked=False, cleared_at=None,
    last_outcome=None,
)  # fmt: skip
NODE = NodeRecord(
    id=uuid4(), name="north", version="1", started_at=NOW, heartbeat_at=NOW, phase="running",
    idle=0, busy=2, retiring=0, default_count=2, max_count=2, silent_seconds=1.0,
    kinds=Kinds({"report": KnownKind(None, None, 100, 10.0, 0.0)}),
)  # fmt: skip
SEEN = WhyFacts(
    job=JOB, now=NOW, paused_at=None, paused_by=None, in_target=(), behind_before=0,
    parked_before=0, line=Line({"report": 4}, {"report": 6}, 0, is_whole=True, includes_it=True),
    leased=(Leased(1, "report", "north", 1, 4.0), Leased(2, "report", "north", 2, 0.0)),
    leased_total=2,
    nodes=(NODE,), parked_kinds=frozenset(),
)  # fmt: skip


def seen(**values: Any) -> WhyFacts:
    """The job's own values, and the others'."""
    own = {key: values.pop(key) for key in list(values) if key in attrs.fields_dict(JobFacts)}
    return attrs.evolve(SEEN, job=attrs.evolve(JOB, **own), **values)


def test_a_job_that_waits_for_workers() -> None:
    assert why_text(why(SEEN)) == (
        "job 7 · report · queued\n"
        "  all 2 workers are busy: it is number 5 of 6 in line\n"
        "  starts in about 23.0 s to 28.5 s"
    )


def test_several_reasons_each_with_its_times_and_what_to_do() -> None:
    since = NOW - timedelta(seconds=90)
    text = why_text(
        why(seen(run_at=NOW + timedelta(hours=2), paused_at=since, paused_by="anna", nodes=()))
    )
    assert text == (
        "job 7 · report · queued\n"
        "  it is not due yet  (until 2030-01-01 14:00:00Z, in 2 h)\n"
        "\n"
        "and then:\n"
        "  the queue is paused by anna  (since 2030-01-01 11:58:30Z, 1 m 30 s ago)\n"
        "    do: `musterd queue resume`\n"
        "  no node is alive\n"
        "    do: start a node: `musterd run`"
    )


ALL = [
    SEEN,
    seen(state=JobState.PENDING),
    seen(state=JobState.PAUSED, reason=NASTY),
    seen(run_at=NOW + timedelta(seconds=5), attempt=1, reason=NASTY),
    seen(paused_at=NOW, paused_by=NASTY),
    seen(kind=NASTY),
    seen(nodes=()),
    seen(nodes=(attrs.evolve(NODE, phase="draining", name=NASTY),)),
    seen(nodes=(attrs.evolve(NODE, kinds=Kinds({"report": KnownKind(NASTY)})),)),
    seen(nodes=(attrs.evolve(NODE, kinds=Kinds({"report": KnownKind(None, 2)})),)),
    seen(nodes=(attrs.evolve(NODE, kinds=Kinds({}, max_running=2), idle=3, max_count=5),)),
    seen(target=NASTY, behind_before=10_000),
    seen(target=NASTY, in_target=(TargetJob(3, JobState.FAILED, NOW, NOW, NASTY, True),)),
    seen(target=NASTY, in_target=(TargetJob(3, JobState.QUEUED, None, NOW, None, True),)),
    seen(state=JobState.RUNNING, node=NASTY, worker=1, attempt=1, started_at=NOW,
         lease_expires_at=NOW + timedelta(seconds=9), request="cancel"),
    seen(state=JobState.ASSIGNED, node="north", lease_expires_at=NOW, nodes=()),
    seen(state=JobState.ASSIGNED, node="north", lease_expires_at=NOW + timedelta(seconds=9)),
    seen(state=JobState.FAILED, error='{"type": "oops", "message": "x\\ny"}', target="t"),
    seen(leased=(), nodes=(attrs.evolve(NODE, idle=9, max_count=9),)),
]  # fmt: skip


@pytest.mark.parametrize("one", ALL)
def test_whatever_is_said_is_as_it_is_described(one: WhyFacts) -> None:
    whole: Any = json.loads(json.dumps(why_object(why(one), "default")))
    assert list(whole) == WHY["required"]
    for reason in whole["reasons"]:
        properties: Any = REASON["properties"]
        assert {"code", "text"} <= set(reason) <= set(properties)
        assert reason["code"] in properties["code"]["enum"]
    assert whole["reasons"]


def test_every_reason_was_said() -> None:
    said = {reason.code for one in ALL for reason in why(one).reasons}
    assert said == set(Code)


@pytest.mark.parametrize("one", ALL)
def test_no_text_of_unknown_origin_reaches_a_terminal_as_it_is(one: WhyFacts) -> None:
    text = why_text(why(one))
    assert "\x1b" not in text
    assert "\nb" not in text


def test_the_example_object() -> None:
    whole = why_object(why(SEEN), "shop")
    assert (whole["id"], whole["tenant"], whole["state"]) == (7, "shop", "queued")
    assert (whole["position"], whole["position_exact"], whole["position_of"]) == (5, True, 6)
    assert whole["estimated_start"] == {
        "earliest": "2030-01-01T12:00:23.000000Z",
        "latest": "2030-01-01T12:00:28.510000Z",
        "unmeasured_kinds": [],
    }


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (Estimate(12, 40, ()), "starts in about 12.0 s to 40.0 s"),
        (Estimate(0, 40, ()), "starts within about 40.0 s"),
        (Estimate(12, None, ("a",)), "starts in 12.0 s or later"),
        (Estimate(0, None, ("a",)), "nobody can say when"),
    ],
)
def test_a_band_in_words(start: Estimate, text: str) -> None:
    assert band_text(start) == text


def test_a_node_for_programs() -> None:
    whole = json.loads(json.dumps(node_object(NODE)))
    assert (whole["node"], whole["live"], whole["busy"], whole["kinds_whole"]) == (
        "north", True, 2, True,
    )  # fmt: skip
    assert whole["kinds"]["report"]["mean_seconds"] == 10.0
