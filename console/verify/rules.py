"""The rules that a log, and a store, are held to. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Rule(StrEnum):
    """Where one deed breaks several, it is told once, by the nearest."""

    LOG = "log"
    MADE = "made"
    EDGES = "edges"
    ONE_HAND = "one hand"
    ATTEMPTS = "attempts"
    HOLDER = "holder"
    ENDS = "ends"
    CANCELED = "canceled"
    DUE = "due"
    TARGET = "target"
    HALTED = "halted"
    DRAINING = "draining"
    PHASES = "phases"
    WEBHOOKS = "webhooks"
    DELETED = "deleted"
    TABLE = "table"
    COUNTS = "counts"


class Text(NamedTuple):
    """`says` what must hold; `advice`: what to do where it does not."""

    says: str
    advice: str


_BY_HAND = "has somebody changed rows by hand, or restored a part of the database?"
_REPORT = "keep the log (`musterd events --since 0 --json`) and report it: musterd is at fault"

TEXTS: dict[Rule, Text] = {
    Rule.LOG: Text(
        "positions follow each other: none is missing, doubled or out of turn",
        f"{_BY_HAND} A file must hold the whole log: write it without --type, --job, --kind",
    ),
    Rule.MADE: Text(
        "what is told of is a job that was made once and is still there",
        f"{_BY_HAND} Jobs must be deleted by retention, never by SQL",
    ),
    Rule.EDGES: Text("a job goes only from a state to one that may follow it", _REPORT),
    Rule.ONE_HAND: Text(
        "a job is in one hand at a time",
        "stop all nodes but one until it is known why; the work of that job may have been done"
        f" twice; {_REPORT}",
    ),
    Rule.ATTEMPTS: Text("attempts are counted one by one", _BY_HAND),
    Rule.HOLDER: Text(
        "of an attempt only its holder tells, while it is in hand",
        f"somebody writes without the token of the claim; {_REPORT}",
    ),
    Rule.ENDS: Text("a job ends once, and stays as it ended", _BY_HAND),
    Rule.CANCELED: Text("a canceled job does not start", _BY_HAND),
    Rule.DUE: Text(
        "no job is tried again before it is due",
        f"{_BY_HAND} Or the store's clock was set back: `musterd doctor`",
    ),
    Rule.TARGET: Text(
        "who has a target has it alone, from its claim to its end",
        "jobs of this target may have run at once: look at what they did",
    ),
    Rule.HALTED: Text(
        "of a target that is halted no further job is claimed",
        "jobs of this target may have run out of order: look at what they did",
    ),
    Rule.DRAINING: Text("a node that drains claims nothing more", _REPORT),
    Rule.PHASES: Text(
        "a phase that has finished is not run again",
        "were the phases of this kind changed, and changed back, while the job waited? Then all"
        " is well",
    ),
    Rule.WEBHOOKS: Text("of a job that has not ended no end is told to anybody", _REPORT),
    Rule.DELETED: Text(
        "only a job that has ended goes stale, and only a stale one is deleted; none that halts"
        " its target",
        _BY_HAND,
    ),
    Rule.TABLE: Text(
        "the table has each job as the log tells it",
        f"{_BY_HAND} `musterd job ID` shows what the table has, `musterd events --job ID` what"
        " was told",
    ),
    Rule.COUNTS: Text(
        "the counts are those of the table, and those that the log tells",
        f"{_BY_HAND} The counts feed `musterd status`, metrics and scaling",
    ),
}
