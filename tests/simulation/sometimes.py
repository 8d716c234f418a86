"""What must have happened in some seed of every large batch: else the simulation has a blind spot,
and its silence says nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tests.simulation.plan import JOB_FAULTS
from tests.simulation.troubles import TROUBLES

SEEDS_MIN = 300  # a smaller batch may miss something

STEPS = (
    *("new>pending", "new>queued", "pending>queued", "pending>canceled"),
    *("queued>assigned", "queued>running", "queued>canceled", "queued>paused"),
    *("assigned>running", "assigned>queued", "assigned>succeeded", "assigned>canceled"),
    *("assigned>failed", "assigned>paused"),
    *("running>queued", "running>succeeded", "running>failed", "running>canceled"),
    *("running>paused", "paused>queued", "paused>canceled", "failed>queued"),
)
# Of operations: what was asked, and how it was answered.
ANSWERS = (
    *("enqueue ok", "enqueue unknown", "enqueue refused", "enqueue old"),
    *("claim ok", "claim unknown", "claim refused", "claim found", "read_back found"),
    *("settle ok", "settle stale", "settle unknown", "settle turned", "settle forgiven"),
    *("renew ok", "renew stale", "renew unknown", "renew asked", "reap found"),
    *("progress ok", "progress stale", "phase ok"),
    *("cancel ok", "cancel asked", "cancel refused", "pause ok", "pause asked"),
    *("resume ok", "release ok", "clear ok", "pause_queue ok", "resume_queue ok"),
    *("take_duty ok", "take_duty stale", "renew_duty ok", "renew_duty stale", "release_duty ok"),
)
OTHERS = ("told 204", "told 503", "fire ok", "fire found", "delete found")
HANDLERS = (
    *("handler success", "handler stopped", "handler retry", "handler fatal", "handler cancel"),
    *("handler snooze", "handler broken"),
)
WANTED = (*TROUBLES, *JOB_FAULTS, *STEPS, *ANSWERS, *OTHERS, *HANDLERS)


def edges_of(records: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Of a history's lines, as they were written."""
    found: Counter[str] = Counter()
    calls: dict[int, Mapping[str, object]] = {}
    for record in records:
        match record["record"]:
            case "edge":
                found[f"{record['from'] or 'new'}>{record['to']}"] += 1
            case "call":
                calls[record["id"]] = record
                if record.get("forgive"):
                    found["settle forgiven"] += 1
            case "reply":
                found.update(_answer(str(calls[record["id"]]["op"]), record))
            case "end":
                found[f"handler {record['outcome']}"] += 1
            case "delivery":
                found[f"told {record['status']}"] += 1
            case _:
                pass
    return found


def _answer(op: str, reply: Mapping[str, object]) -> list[str]:
    told = [f"{op} {reply['status']}"]
    if reply["status"] != "ok":
        return told
    if reply.get("jobs") or (op == "fire" and reply.get("job")):
        told.append(f"{op} found")
    if reply.get("asked"):
        told.append(f"{op} asked")
    if reply.get("new") is False:
        told.append(f"{op} old")
    if op == "settle" and reply.get("state"):
        told.append("settle turned")
    return told


def never(hit: Mapping[str, int]) -> list[str]:
    return [one for one in WANTED if not hit.get(one)]
