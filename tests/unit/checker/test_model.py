"""Histories by lot: what keeps the rules passes; of what is forged, most is noticed."""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.checker.examples.broken import BROKEN
from tests.checker.examples.model import Model
from tests.checker.examples.model_store import Store
from tests.checker.history import NotAHistory
from tests.checker.verdict import judge
from tests.checker.writing import OF_OPERATION, OF_RECORD, History, to_lines

Record = dict[str, Any]
OPERATIONS = {"edges", "claims", "duties", "schedules"}  # which real daemons do not tell of
SEEN = [
    pytest.param(True, set[str](), id="commits"),
    pytest.param(False, {"edges"}, id="replies"),
    pytest.param(False, OPERATIONS, id="real-daemons"),
]
SEEDS = range(8)
BROKEN_SEEDS = range(30)
SHARE_MIN = 0.9
FORGED_SEEDS = range(4)
FORGERIES_OF_EACH = 2


@pytest.mark.parametrize(("commits", "hidden"), SEEN)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_that_keeps_the_rules_passes(seed: int, commits: bool, hidden: set[str]) -> None:
    judgement = judge(without(Model(seed, commits=commits).run(), hidden).lines())
    assert [f"{one.invariant}: {one.story}" for one in judgement.violations] == []
    checked = {one.name for one in judgement.verdicts if one.finding == "ok"}
    blind = {"S13", "S15", "S17"} if "duties" in hidden else set[str]()
    assert checked >= {f"S{number}" for number in range(1, 21)} - blind


@pytest.mark.parametrize(
    ("store", "told", "told_by_less"), BROKEN, ids=lambda one: getattr(one, "__name__", one)
)
def test_a_store_with_a_rule_left_out_is_noticed(
    store: type[Store], told: str, told_by_less: str
) -> None:
    assert first_noticed(store, told, hidden=set()) is not None
    if told_by_less:
        assert first_noticed(store, told_by_less, hidden=OPERATIONS) is not None


def first_noticed(store: type[Store], told: str, hidden: set[str]) -> int | None:
    for seed in BROKEN_SEEDS:
        history = Model(seed, 40, commits=not hidden, brief=True, store=store).run()
        if told in judge(without(history, hidden).lines()).violated:
            return seed
    return None


def test_the_same_seed_gives_the_same_history() -> None:
    assert Model(7, commits=True).run().lines() == Model(7, commits=True).run().lines()
    assert Model(7).run().lines() != Model(8).run().lines()


# Each takes the lines of a history and the places at which it may be applied.

Forgery = Callable[[list[Record], int, random.Random], None]


def drop(lines: list[Record], place: int, rng: random.Random) -> None:
    del lines[place]


def double(lines: list[Record], place: int, rng: random.Random) -> None:
    lines.insert(place, dict(lines[place]))


def swap(lines: list[Record], place: int, rng: random.Random) -> None:
    """With the next line of its kind about the same job."""
    key = "job" if "job" in lines[place] else "job_id"
    for other in range(place + 1, len(lines)):
        same = lines[other]["record"] == lines[place]["record"]
        if same and lines[other].get(key) == lines[place][key]:
            lines[place], lines[other] = lines[other], lines[place]
            return


def other_token(lines: list[Record], place: int, rng: random.Random) -> None:
    lines[place] = {**lines[place], "token": rng.choice(tokens_of(lines))}


def other_attempt(lines: list[Record], place: int, rng: random.Random) -> None:
    line = json.loads(json.dumps(lines[place]))
    where = line.get("data") or (line.get("jobs") or [line])[0]
    where["attempt"] = max(1, where.get("attempt", 1) + rng.choice([-2, -1, 1, 2]))
    lines[place] = line


def other_state(lines: list[Record], place: int, rng: random.Random) -> None:
    states = {"queued", "running", "paused", "succeeded", "failed", "canceled"}
    field = "to" if "to" in lines[place] else "state"
    choice = rng.choice(sorted(states - {lines[place][field]}))
    lines[place] = {**lines[place], field: choice}


def other_position(lines: list[Record], place: int, rng: random.Random) -> None:
    lines[place] = {**lines[place], "id": max(0, lines[place]["id"] - rng.randint(1, 9))}


def is_taken(lines: list[Record], place: int, rng: random.Random) -> None:
    """What was refused to somebody counts as taken."""
    lines[place] = {**lines[place], "status": "ok"}


def is_job_event(line: Record) -> bool:
    return line["record"] == "event" and line.get("job_id") is not None


def brings_jobs(line: Record) -> bool:
    return line["record"] in {"commit", "reply"} and bool(line.get("jobs"))


def is_settle(line: Record) -> bool:
    return line["record"] == "call" and bool(line["op"] == "settle")


FORGERIES: Sequence[tuple[str, Forgery, Callable[[Record], bool]]] = (
    ("event dropped", drop, is_job_event),
    ("event doubled", double, is_job_event),
    ("events swapped", swap, is_job_event),
    ("position altered", other_position, is_job_event),
    ("attempt of event", other_attempt, lambda line: "attempt" in line.get("data", {})),
    ("edge dropped", drop, lambda line: line["record"] == "edge" and line["from"] is not None),
    ("edge altered", other_state, lambda line: line["record"] == "edge"),
    ("row dropped", drop, lambda line: line["record"] == "final.job"),
    ("row altered", other_state, lambda line: line["record"] == "final.job"),
    ("message dropped", drop, lambda line: line["record"] == "final.message"),
    ("message doubled", double, lambda line: line["record"] == "final.message"),
    ("attempt of claim", other_attempt, lambda line: brings_jobs(line) and "attempt" in str(line)),
    ("token of settle", other_token, is_settle),
    ("state of settle", other_state, is_settle),
    ("begin doubled", double, lambda line: line["record"] == "begin"),
    ("token of begin", other_token, lambda line: line["record"] == "begin"),
    ("stale taken", is_taken, lambda line: line.get("status") == "stale"),
    ("commit dropped", drop, lambda line: line["record"] == "commit" and "state" in line),
)


@pytest.mark.parametrize(("commits", "hidden"), SEEN)
def test_most_forgeries_are_noticed(commits: bool, hidden: set[str]) -> None:
    """With commits there is nothing to guess; else some forgeries could be true. Forged is what is
    evidence. `--log-cli-level=info` shows the shares.
    """
    made, noticed = Counter[str](), Counter[str]()
    for seed in FORGED_SEEDS if commits else range(2):
        history = without(Model(seed, 40, commits=commits, brief=True).run(), hidden)
        whole = [json.loads(line) for line in history.lines()]
        for name, forged in forgeries_of(whole, random.Random(seed)):
            made[name] += 1
            noticed[name] += is_noticed(forged)
    share = noticed.total() / made.total()
    told = ", ".join(f"{name} {noticed[name]}/{made[name]}" for name in made)
    logging.getLogger(__name__).info("noticed: %.0f %% of %s: %s", share * 100, made.total(), told)
    assert share >= SHARE_MIN


def forgeries_of(whole: list[Record], rng: random.Random) -> Iterator[tuple[str, list[Record]]]:
    for name, forge, fits in FORGERIES:
        places = [place for place, line in enumerate(whole) if fits(line)]
        for place in rng.sample(places, min(FORGERIES_OF_EACH, len(places))):
            forged = list(whole)
            forge(forged, place, rng)
            if forged != whole:
                yield name, forged


def without(history: History, hidden: set[str]) -> History:
    """The same run, of which less was seen."""
    calls = {
        record["id"]
        for record in history.body
        if record["record"] == "call" and evidence_of(record) in hidden
    }
    history.body = [
        record
        for record in history.body
        if evidence_of(record) not in hidden
        and not (record["record"] in {"commit", "reply"} and record["id"] in calls)
    ]
    return history


def evidence_of(record: Record) -> str | None:
    if record["record"] == "call":
        return OF_OPERATION[record["op"]]
    return OF_RECORD.get(record["record"])


def is_noticed(lines: list[Record]) -> bool:
    for seq, line in enumerate(line for line in lines if "seq" in line):
        line["seq"] = seq
    try:
        return bool(judge(to_lines(lines)).violated)
    except NotAHistory:
        return True


def tokens_of(lines: list[Record]) -> list[str]:
    return sorted({line["token"] for line in lines if line["record"] == "begin"})
