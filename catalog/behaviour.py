"""What a deterministic kind does with a job: the same job, the same behaviour, on every machine."""

import json
from hashlib import blake2b
from typing import TypeAlias, cast

from attrs import frozen

from musterd.catalog.kinds import Deterministic, Outcome, WorkKind

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

_HASH_BYTES = 8
_HASH_BITS = 8 * _HASH_BYTES
_MS_PER_SECOND = 1_000


@frozen
class Planned:
    """How long an attempt takes and how it ends."""

    duration_seconds: float
    outcome: Outcome


def plan(kind: WorkKind, payload: JSON, attempt: int) -> Planned:
    """Says what the attempt (from 1) does. Depends on nothing but its arguments.

    `fail_first` counts only where the outcome is success. Raises TypeError for real work.
    """
    behaviour = kind.behaviour
    if not isinstance(behaviour, Deterministic):
        raise TypeError(f"kind {kind.name!r} does real work: nobody can say what comes of it")
    outcome = behaviour.outcome
    if outcome == "success" and attempt <= behaviour.fail_first:
        outcome = "fail"
    duration_ms = behaviour.duration_ms_min
    span_ms = behaviour.duration_ms_max - duration_ms
    if span_ms:
        name = kind.name if kind.phase is None else f"{kind.name}/{kind.phase}"
        duration_ms += _hash(name, payload, attempt) * (span_ms + 1) >> _HASH_BITS
    return Planned(duration_ms / _MS_PER_SECOND, outcome)


def _hash(name: str, payload: JSON, attempt: int) -> int:
    text = f"{name}\0{attempt}\0{_canonical_text(payload)}"
    return int.from_bytes(blake2b(text.encode(), digest_size=_HASH_BYTES).digest(), "big")


def _canonical_text(payload: JSON) -> str:
    return json.dumps(_canonical(payload), sort_keys=True, separators=(",", ":"))


def _canonical(value: JSON) -> JSON:
    """Gives one spelling to what is one number: stores differ in whether 100 was 1e2 or 100.0."""
    if isinstance(value, dict):
        return {key: _canonical(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_canonical(each) for each in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return _canonical_number(value)


def _canonical_number(value: float) -> int | float:
    try:
        number = float(value)
    except OverflowError:  # beyond a double: an int, which has one spelling only
        return cast(int, value)
    return int(number) if number.is_integer() else number
