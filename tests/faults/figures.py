"""What a history says of a campaign beyond right and wrong: how soon work went on."""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from tests.checker.facts import Record, moment
from tests.checker.seen import CLAIMS, data_of, is_lost
from tests.faults.recording import records

SETTLED = frozenset({"job.succeeded", "job.failed", "job.retrying", "job.canceled"})
OVER = frozenset({"heal", "thaw", "store_back", "shipping_ends"})  # ends of faults, and none


@attrs.frozen
class Spread:
    """Seconds."""

    count: int
    median: float
    most: float

    def __str__(self) -> str:
        return f"{self.count} x, p50 {self.median:.1f} s, max {self.most:.1f} s"


@attrs.define
class Story:
    """What is read of a history in one go."""

    faults: list[Record] = attrs.Factory(list[Record])
    settled_at: list[float] = attrs.Factory(list[float])
    lost: list[tuple[str, float, float]] = attrs.Factory(list[tuple[str, float, float]])
    acknowledged: dict[int, str] = attrs.Factory(dict[int, str])  # by job: what was asked for
    there: dict[int, str] = attrs.Factory(dict[int, str])


def read(history: Path) -> Story:
    story = Story()
    claims: dict[int, tuple[str, float]] = {}
    asked: dict[int, str] = {}
    for record in records(history):
        match record["record"]:
            case "fault":
                story.faults.append(record)
            case "call" if record["op"] == "enqueue":
                asked[record["id"]] = record["payload"]["n"]
            case "reply" if record.get("job") and record["id"] in asked:
                story.acknowledged[record["job"]] = asked[record["id"]]
            case "final.job":
                story.there[record["id"]] = record["payload"].get("n", "")
            case "event":
                _take_event(story, claims, record)
            case _:
                pass
    return story


def _take_event(story: Story, claims: dict[int, tuple[str, float]], event: Record) -> None:
    at, data = moment(event["at"]), data_of(event)
    if event["type"] in CLAIMS:
        claims[event["job_id"]] = (str(data.get("node")), at)
    elif event["type"] in SETTLED:
        story.settled_at.append(at)
    if is_lost(event):
        node, since = claims.get(event["job_id"], ("", at))
        story.lost.append((node, since, at))


def recoveries(story: Story) -> Mapping[str, Spread]:
    """By kind of fault: until the next job was settled, anywhere. And of jobs that a node had in
    its hand when it was killed: until their lease was ended.
    """
    found: dict[str, list[float]] = defaultdict(list)
    times = sorted(story.settled_at)
    for fault in story.faults:
        place = bisect_right(times, fault["wall"])
        if not is_over(fault) and place < len(times):
            found[str(fault.get("how", fault["what"]))].append(times[place] - fault["wall"])
        if fault["what"] == "kill":
            found["kill, until what it held was taken from it"] += list(taken(story, fault))
    return {name: spread(seconds) for name, seconds in sorted(found.items()) if seconds}


def taken(story: Story, kill: Record) -> Iterator[float]:
    for node, since, at in story.lost:
        if node == kill["node"] and since <= kill["wall"] < at:
            yield at - kill["wall"]


def lost_jobs(story: Story) -> int:
    """Jobs that some client was told of, and that are not there: by a failover, or by a mistake."""
    return sum(story.there.get(job) != name for job, name in story.acknowledged.items())


def spread(seconds: Sequence[float]) -> Spread:
    return Spread(len(seconds), statistics.median(seconds), max(seconds))


def is_over(fault: Record) -> bool:
    return fault["what"] in OVER or fault["what"].endswith("_over")
