"""What users do: jobs that they want, and what they ask for meanwhile."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

Drawn = tuple[float, str, dict[str, Any]]

CONTROLS = ("cancel", "pause", "resume", "release", "clear")
BAD_PAYLOADS = ("[" * 4000 + "]" * 4000, "9" * 6000, '{"n": 1' + "0" * 400 + "}")
STEP_SECONDS = 0.5  # of long work
LONG_SECONDS = 15.0  # longer than it may take to hear of a cancel
FEW_FROM = 1000  # numbers of jobs that come last
PHASES = ("fetch", "make", "send")


def draw(rng: random.Random, seconds: float, faults: frozenset[str]) -> list[Drawn]:
    jobs = rng.choice((8, 15, 25, 40))
    calls = 0
    found: list[Drawn] = []
    while calls < jobs:
        many = rng.choice((1, 1, 1, 2, 4))
        at = rng.uniform(0.0, seconds)
        specs = [new_job(rng, calls + number, faults) for number in range(many)]
        found.append((at, "enqueue", {"client": f"c{rng.randrange(3)}", "jobs": specs}))
        calls += many
    rate = rng.choice((0.0, 0.3, 1.0))
    for _ in range(int(jobs * rate)):
        what = rng.choice(("cancel", "cancel", "pause", "pause", "resume", *CONTROLS))
        found.append((rng.uniform(0.5, seconds), "control", {"what": what, "pick": rng.random()}))
    for _ in range(rng.choice((0, 0, 1, 2))):
        at = rng.uniform(0.0, seconds)
        found.append((at, "pause_queue", {}))
        found.append((at + rng.uniform(0.2, 6.0), "resume_queue", {}))
    return found


def draw_few(rng: random.Random, seconds: float) -> list[Drawn]:
    """Some jobs, and requests about the latest of all: of one job several, one after the other."""
    found: list[Drawn] = []
    for number in range(rng.choice((0, 2, 4, 6))):
        job = new_job(rng, FEW_FROM + number, frozenset())
        if rng.random() < 0.4:
            job = with_long_work(job, LONG_SECONDS)
        found.append((rng.uniform(0.0, seconds / 2), "enqueue", {"client": "c0", "jobs": [job]}))
    requests = (("cancel",), ("pause",), ("pause", "cancel"), ("cancel", "pause"))
    for _ in range(rng.choice((0, 2, 4))):
        at, pick = rng.uniform(0.2, seconds), rng.uniform(0.7, 1.0)
        for what in rng.choice(requests):
            found.append((at, "control", {"what": what, "pick": pick}))
            at += rng.uniform(0.0, 0.05)
    return found


def with_long_work(job: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """The same job, but it takes so long; unless nobody can read what it is to do."""
    if job["payload"] in BAD_PAYLOADS:
        return dict(job)
    payload = json.loads(job["payload"])
    payload["steps"] = [STEP_SECONDS] * round(seconds / STEP_SECONDS)
    return {**job, "payload": json.dumps(payload)}


def new_job(rng: random.Random, number: int, faults: frozenset[str]) -> dict[str, Any]:
    """A job as a user wants it: the fields of `NewJob`."""
    kind = rng.choice(("plain", "plain", "plain", "capped", "pipeline", "once", "rest", "brief"))
    payload = _payload(rng, number, kind, faults)
    job: dict[str, Any] = {"kind": kind, "payload": json.dumps(payload)}
    if "bad_payload" in faults and rng.random() < 0.1:
        job["payload"] = rng.choice(BAD_PAYLOADS)
    if rng.random() < 0.3:
        job["target"] = rng.choice(("red", "blue"))
    if rng.random() < 0.2:
        job["priority"] = rng.choice((-1, 1, 5))
    if rng.random() < 0.15:
        job["delay_seconds"] = rng.choice((0.2, 1.0, 5.0))
    if rng.random() < 0.1:
        job["hold"] = True
    if rng.random() < 0.25:
        job["dedup_key"] = f"key{rng.randrange(6)}" if rng.random() < 0.4 else f"own{number}"
        job["dedup_scope"] = rng.choice(("until_finished", "forever"))
    if rng.random() < 0.3:
        job["webhook"] = "https://shop.example/hook"
    if rng.random() < 0.1:
        job["max_attempts"] = rng.choice((1, 2))
    return job


def _payload(rng: random.Random, number: int, kind: str, faults: frozenset[str]) -> dict[str, Any]:
    steps = rng.choice(((0.02,), (0.3,), (0.1, 0.1, 0.1), (1.0, 0.5), (2.5,), (0.2, 4.0)))
    payload: dict[str, Any] = {"n": number, "steps": list(steps)}
    if kind == "brief":
        payload["steps"] = []
    payload["end"] = rng.choice(("success",) * 12 + ("retry", "fatal", "cancel", "snooze"))
    if rng.random() < 0.15:
        payload["fail_first"] = rng.choice((1, 2))
    if rng.random() < 0.3:
        payload["retry_in"] = rng.choice((0.1, 1.0))
    if "crashing_handler" in faults and rng.random() < 0.15:
        payload["end"] = "crash"
    if "hung_handler" in faults and rng.random() < 0.3:
        payload["deaf"] = rng.choice((0.3, 2.0, 8.0))
    if "blocked_loop" in faults and rng.random() < 0.15 and steps:
        payload["block"] = rng.choice((0.5, 2.0, 5.0))
    if "poison" in faults and rng.random() < 0.08:
        payload["poison"] = True
    return payload
