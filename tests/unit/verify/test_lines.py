"""Logs as files: what is read, and what is said of what cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from musterd.console.verbs.events import InvalidLog, events_of
from musterd.console.verify.judge import Judge, verdict_lines, verdict_object
from musterd.store.event_types import event_object
from tests.unit.verify.telling_logs import judged, log

GOOD: dict[str, Any] = {"id": 1, "at": "2030-01-01T09:00:00Z", "type": "job.enqueued", "job_id": 7}


def line(**values: Any) -> str:
    return json.dumps({**GOOD, **values})


def test_what_the_command_line_writes_is_read_again() -> None:
    events = log("1 enqueued", "1 started 1", "1 retrying 1 run_at=9", "- started node=north")
    written = [json.dumps(event_object(one, "acme")) for one in events]
    assert list(events_of(written, None)) == events
    assert list(events_of([*written, "\n"], "acme")) == events
    assert list(events_of(written, "other")) == []


def test_other_lines_of_a_history_are_skipped() -> None:
    lines = ['{"record": "header", "format": 1}', line(record="event"), '{"record": "final"}']
    assert [one.job_id for one in events_of(lines, None)] == [7]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("{", "line 2 is no JSON"),
        ("[" * 100_000, "line 2 is no JSON"),
        ("[1]", "line 2 is no object"),
        ("null", "line 2 is no object"),
        (line(id=0), "`id` is no position"),
        (line(id=True), "`id` is no position"),
        (line(id=2**63), "`id` is no position"),
        (line(id="2"), "`id` is no position"),
        (line(type=None), "`type` is no text"),
        (line(job_id=1.5), "`job_id` is no id"),
        (line(kind=3), "`kind` is no text"),
        (line(target=[]), "`target` is no text"),
        (line(data=[]), "`data` is no object"),
        (line(at="2030-01-01T09:00:00"), "`at` is no time with a zone"),
        (line(at=5), "`at` is no time with a zone"),
        (line(at="soon"), "`at` is no time with a zone"),
        (line(tenant="other"), "line 2 is of tenant 'other', others are of 'acme'"),
    ],
)
def test_what_is_no_log_says_so(bad: str, says: str) -> None:
    with pytest.raises(InvalidLog) as refused:
        list(events_of([line(tenant="acme"), bad], None))
    assert says in str(refused.value)


def test_the_verdict_begins_with_whether_all_holds() -> None:
    good = verdict_lines(judged(log("1 enqueued", "1 started 1", "1 succeeded 1")))
    assert good[0] == "all holds: 7 rules ok (3 events, positions 1 to 3)"
    bad = verdict_lines(judged(log("1 enqueued", "1 started 1", "1 assigned 2 node=south")))
    assert bad[0] == "NOT ALL HOLDS: 1 violation of 1 rule (3 events, positions 1 to 3)"
    told = bad[-3:]
    assert told[0] == "one hand: job 1, events 2 and 3"
    assert told[1] == "  job 1 was claimed by node south while it was held by node north"
    assert told[2].startswith("  do: stop all nodes but one")


def test_a_verdict_for_programs_has_every_rule() -> None:
    found = verdict_object(judged(log("1 enqueued", "1 succeeded 1")), "acme")
    assert found["holds"] is False
    assert (found["tenant"], found["first"], found["last"], found["events"]) == ("acme", 1, 2, 2)
    rules: Any = found["rules"]
    findings = {one["rule"]: one["finding"] for one in rules}
    assert findings["holder"] == "violated"
    assert findings["log"] == "ok"
    assert findings["due"] == "not checked"
    assert all((one["reason"] is None) is (one["finding"] != "not checked") for one in rules)
    violations: Any = found["violations"]
    assert [(one["rule"], one["positions"]) for one in violations] == [("holder", [1, 2])]


def test_nothing_was_looked_at() -> None:
    assert verdict_lines(Judge())[0] == "all holds: 0 rules ok (0 events)"
