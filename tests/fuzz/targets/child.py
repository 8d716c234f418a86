"""What a handler's process may write to the daemon: any bytes, and any JSON in a whole frame."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from random import Random
from typing import Any
from uuid import UUID

import attrs

from musterd.catalog.kinds import Python, WorkKind
from musterd.config.settings import Retry
from musterd.store.input import PayloadLimits, check_payload
from musterd.store.leases import Claim
from musterd.workers.outcome import judge
from musterd.workers.runners.child_messages import (
    FRAME,
    Ended,
    Inbox,
    Message,
    MessageFault,
    Report,
    whose,
)
from musterd.workers.runners.results import AnswerLimits, outcome_of
from tests.fuzz.mutating import changed, crossed
from tests.fuzz.target import Wrong

CLAIM = Claim(5, "kind", "{}", 1, None, 0, 0.0, 1, UUID(int=7))
KIND = WorkKind(
    "kind", Python("shop", "noop", "process", ()), False, Retry(3, "fixed", 1.0, 1.0, 1.0, "none"),
    None, 0, "requeue", "fuzz",
)  # fmt: skip
LIMITS = AnswerLimits(2_000, 64)
BYTES_MAX = 20_000
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 50, 101, 2**70, 10**400, 1.5, -0.0, math.inf, math.nan, 1e308),
    *("", "a", "a\0", "\ud800", "success", "snooze", "x" * 600, [], {}, [[]], {"a": {}}),
)
WORDS = (*["end"] * 8, *["note"] * 6, "remaining", "phase", "ready", "nothing")
ENDS = ("failure", "cancel", "retry", "snooze", "success", "pause")
PIECES = (
    *(b"null", b"NaN", b"1e999", b'"', b"{", b"}", b"[" * 3000, b"\n", b"\0", b"\xff", b"\\ud800"),
    *(b"9" * 5000, b"-", b"[]", FRAME.pack(0, 1, whose(CLAIM)), FRAME.pack(7, 2, bytes(24))),
)


def _value(rng: Random) -> Any:
    return rng.choice(VALUES)


def _head(rng: Random) -> Any:
    what = rng.choice(WORDS)
    head: dict[str, Any] = {"is": what if rng.random() < 0.95 else _value(rng)}
    if what == "end":
        head["memory_bytes"] = 1 if rng.random() < 0.8 else _value(rng)
        if rng.random() < 0.5:
            head["result"] = rng.random() < 0.8
        else:
            parts = [rng.choice(ENDS), None, ["E"], "said", rng.choice((None, 3)), False, False]
            if rng.random() < 0.5:
                parts[rng.randrange(len(parts))] = _value(rng)
            head["ending"] = parts[: rng.choice((7, 7, 7, 3))]
    elif what == "note":
        spent = {"a": _value(rng)} if rng.random() < 0.7 else _value(rng)
        told = {"percent": _value(rng), "note": _value(rng), "spent": spent}
        head |= {key: value for key, value in told.items() if rng.random() < 0.5}
    elif what == "phase":
        head["name"] = _value(rng)
    return head if rng.random() < 0.95 else rng.choice((_value(rng), [head]))


def _frame(rng: Random, number: int) -> bytes:
    body = json.dumps(_value(rng)) if rng.random() < 0.7 else rng.choice(("", "{", "\ud800"))
    data = f"{json.dumps(_head(rng))}\n{body}".encode("utf-8", "surrogatepass")
    about = whose(CLAIM) if rng.random() < 0.95 else rng.randbytes(24)
    return FRAME.pack(len(data), number if rng.random() < 0.95 else 0, about) + data


@attrs.frozen
class Child:
    name: str = "child"
    share: int = 12

    def make(self, rng: Random, corpus: Sequence[bytes]) -> bytes:
        if rng.random() < 0.05:
            return rng.randbytes(rng.randrange(80))
        whole = b"".join(_frame(rng, number) for number in range(1, rng.randint(2, 5)))
        if rng.random() < 0.1 and corpus:
            whole = crossed(rng, whole, rng.choice(corpus))
        return whole if rng.random() < 0.6 else changed(rng, whole, PIECES, 3)

    def check(self, whole: bytes) -> None:
        at_once = _heard([whole])
        if at_once != _heard([whole[place : place + 7] for place in range(0, len(whole), 7)]):
            raise Wrong("it matters in which pieces it arrives")
        for message in at_once:
            _keep(message)


def _heard(chunks: Sequence[bytes]) -> list[Message | str]:
    inbox = Inbox(BYTES_MAX)
    inbox.expect(whose(CLAIM))
    heard: list[Message | str] = []
    try:
        for chunk in chunks:
            inbox.add(chunk)
            while (message := inbox.next()) is not None:
                heard.append(message)
    except MessageFault as fault:
        heard.append(str(fault))
    return heard


def _keep(message: Message | str) -> None:
    """What is taken can be kept by any store."""
    if isinstance(message, str):
        _text(message.encode("ascii", "backslashreplace").decode(), 400)
    elif isinstance(message, Report):
        _report(message)
    elif isinstance(message, Ended):
        verdict = judge(outcome_of(message.ending, KIND, LIMITS), CLAIM, KIND, 2_000)
        for text in (verdict.result, verdict.error):
            if text is not None:
                check_payload(text, PayloadLimits(10_000, 64))
        _text(verdict.reason or "", 2_000)
        if not 0 <= (verdict.delay_seconds or 0.0) <= 366 * 86_400:
            raise Wrong("a delay that nobody may ask for")


def _report(told: Report) -> None:
    _text(told.note or "", 500)
    if not 0 <= (told.percent or 0.0) <= 100:
        raise Wrong("a percentage out of bounds")
    if told.spent is not None:
        check_payload(told.spent, PayloadLimits(30_000, 2))


def _text(text: str, length_max: int) -> None:
    text.encode()
    if "\0" in text or len(text) > length_max:
        raise Wrong("a text that no store keeps")


CHILD = Child()
