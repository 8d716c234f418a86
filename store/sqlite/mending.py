"""Rows that somebody changed past the checks of the schema: what is wrong with one, and values in
place of those that nobody can read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from musterd.store.sqlite.rows import TIME_FIRST, TIME_LAST

COUNT_MAX = 1_999_999_999  # one more is the last that a row may hold, and the next claim adds it
FOUND_LENGTH_MAX = 60
PERCENT_MAX = 100
NOW = object()

Value = Any
Row = Mapping[str, Value]


class Rule(NamedTuple):
    """`instead` stands in the place of a value that is not `right`."""

    wanted: str
    right: Callable[[Value], bool]
    instead: Value = None


def mended(row: Row, now: int) -> tuple[dict[str, Value], str]:
    """What has to be changed of a row, and what was found there."""
    wrong = [name for name, rule in RULES.items() if not rule.right(row[name])]
    found = "; ".join(
        f"{name} is {_shown(row[name])}, wanted {RULES[name].wanted}" for name in wrong
    )
    instead = {name: RULES[name].instead for name in wrong}
    return {name: now if value is NOW else value for name, value in instead.items()}, found


def _shown(value: Value) -> str:
    text = repr(value)
    return text if len(text) <= FOUND_LENGTH_MAX else f"{text[:FOUND_LENGTH_MAX]}…"


def _whole(low: int, high: int | None = None) -> Callable[[Value], bool]:
    def right(value: Value) -> bool:
        return isinstance(value, int) and value >= low and (high is None or value <= high)

    return right


def _text(low: int = 0, high: int | None = None) -> Callable[[Value], bool]:
    def right(value: Value) -> bool:
        if not isinstance(value, str) or "\0" in value or len(value) < low:
            return False
        return high is None or len(value) <= high

    return right


def _is_json(value: Value) -> bool:
    try:
        json.loads(value if isinstance(value, str) else "")
    except (ValueError, RecursionError):
        return False
    return "\0" not in value


def _is_percent(value: Value) -> bool:
    return isinstance(value, int | float) and 0 <= value <= PERCENT_MAX


def _or_none(right: Callable[[Value], bool]) -> Callable[[Value], bool]:
    return lambda value: value is None or right(value)


A_TIME = "a time of the years 1 to 9999"
_is_time = _whole(TIME_FIRST, TIME_LAST)
_COUNT = Rule(f"0 to {COUNT_MAX}", _whole(0, COUNT_MAX), 0)
_RARER_TIME = Rule(A_TIME, _or_none(_is_time))
_TIMES = ("started_at", "finished_at", "requested_at", "cleared_at", "stale_at", "changed_at")
LENGTHS = {
    "reason": 2_097_152, "node": 400, "last_outcome": 20, "progress_note": 1000, "log": 67_108_864,
    "schedule": 200,
}  # fmt: skip


def _at_most(length: int) -> Rule:
    return Rule(f"text of at most {length} characters", _or_none(_text(0, length)))


def _short(length: int) -> Rule:
    return Rule(f"text of 1 to {length} characters", _or_none(_text(1, length)))


RULES: Mapping[str, Rule] = {
    "kind": Rule("text of 1 to 100 characters", _text(1, 100), "unreadable"),
    "payload": Rule("JSON", _is_json, "{}"),
    **dict.fromkeys(("result", "error", "spent"), Rule("JSON", _or_none(_is_json))),
    **{name: _at_most(length) for name, length in LENGTHS.items()},
    "dedup_key": _short(200),
    "target": _short(200),
    "webhook": _short(2000),
    "priority": Rule("-32768 to 32767", _whole(-32768, 32767), 0),
    "attempt": _COUNT,
    "forgiven": _COUNT,
    "max_attempts": Rule("1 or more", _or_none(_whole(1))),
    "worker": Rule("a number", _or_none(_whole(-(2**31), 2**31))),
    "progress": Rule("0 to 100", _or_none(_is_percent)),
    **dict.fromkeys(("created_at", "run_at"), Rule(A_TIME, _is_time, NOW)),
    **dict.fromkeys((*_TIMES, "scheduled_for"), _RARER_TIME),
}
