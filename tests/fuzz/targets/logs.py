"""Logs that `musterd verify --file` is given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import attrs

from musterd.console.verbs.events import InvalidLog, events_of
from musterd.console.verify.judge import Judge, verdict_lines, verdict_object
from musterd.store.event_types import EVENTS
from tests.fuzz.mutating import changed, crossed

TYPES = tuple(EVENTS)
VALUES: tuple[Any, ...] = (
    None,
    0,
    1,
    2,
    -1,
    2**70,
    1.5,
    "",
    "a",
    "queued",
    "running",
    [],
    {},
    True,
    "9999-12-31",
)
PIECES = (
    *(b"null", b"NaN", b"1e999", b'"', b"{", b"}", b"[" * 3000, b"\n", b"\0", b"\xff", b"\\ud800"),
    *(b"9" * 5000, b"-", b"0001-01-01T00:00:00+14:00", b"9999-12-31T23:59:59-14:00", b",", b":"),
)


def line(rng: Random, position: int) -> str:
    type_ = rng.choice(TYPES)
    job = rng.randint(1, 4) if type_.startswith("job.") else None
    data = {key: rng.choice(VALUES) for key in EVENTS[type_] if rng.random() < 0.6}
    if rng.random() < 0.7:
        data["attempt"] = rng.randint(1, 3)
    hour = rng.choice((0, 9, 23))
    told = {"id": position, "at": f"2030-01-01T{hour:02}:00:00Z", "type": type_, "job_id": job}
    return json.dumps(told | {"target": rng.choice((None, "a", "b")), "data": data})


@attrs.frozen
class Logs:
    name: str = "logs"
    share: int = 8

    def make(self, rng: Random, corpus: Sequence[bytes]) -> bytes:
        count = rng.randint(1, 12)
        whole = "\n".join(line(rng, place) for place in range(1, count + 1)).encode()
        if rng.random() < 0.1 and corpus:
            whole = crossed(rng, whole, rng.choice(corpus))
        return whole if rng.random() < 0.6 else changed(rng, whole, PIECES, 3)

    def check(self, whole: bytes) -> None:
        judge = Judge()
        try:
            judge.take(events_of(whole.decode("utf-8", "replace").split("\n"), None))
        except InvalidLog as error:
            str(error).encode()
            return
        json.dumps(verdict_object(judge, None))
        "\n".join(verdict_lines(judge)).encode()


LOGS = Logs()
