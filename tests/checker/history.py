"""Reads a history line by line, and refuses what is none."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.checker.facts import Record

FORMAT = 1
STATUSES = frozenset({"ok", "stale", "refused", "unknown"})

Fields = Mapping[str, type | tuple[type, ...]]
# What must stand on each line, and of which type; further fields are allowed.
NUMBER = (int, float)
IN_TURN: Fields = {"seq": int, "t": NUMBER}
BY_HANDLER: Fields = {**IN_TURN, "job": int, "attempt": int}
FIELDS: dict[str, Fields] = {
    "header": {"format": int, "records": list},
    "call": {**IN_TURN, "id": (int, str), "who": str, "op": str},
    "commit": {**IN_TURN, "id": (int, str)},
    "reply": {**IN_TURN, "id": (int, str), "status": str},
    "act": {**IN_TURN, "duty": str, "term": str},
    "begin": {**BY_HANDLER, "who": str},
    "effect": {**BY_HANDLER, "who": str},
    "told": BY_HANDLER,
    "end": {**BY_HANDLER, "who": str, "outcome": str},
    "event": {"id": int, "at": str, "type": str},
    "edge": {**IN_TURN, "job": int, "to": str},
    "fault": {**IN_TURN, "what": str},
    "process": {**IN_TURN, "what": str, "node": str},
    "crew": {**IN_TURN, "node": str, "size": int, "min": int, "max": int},
    "delivery": {**IN_TURN, "message": str, "job": int, "type": str},
    "final": {"at": str},
    "final.job": {"id": int, "state": str},
    "final.message": {"webhook_id": str, "job_id": int, "type": str, "state": str},
    "final.duty": {"duty": str},
    "final.schedule": {"name": str},
    "final.counts": {"by_state": dict},
}

JOB: Fields = {"job": int}
FENCED: Fields = {**JOB, "token": str}
LEASED: Fields = {"lease_seconds": NUMBER}
DUTY: Fields = {"duty": str, "term": str}
LEASED_DUTY: Fields = {**DUTY, **LEASED}
NOTHING: Fields = {}
OPERATIONS: dict[str, Fields] = {
    "enqueue": {},
    **dict.fromkeys(("cancel", "pause", "resume", "release", "clear"), JOB),
    **dict.fromkeys(("pause_queue", "resume_queue", "reap", "take_over", "delete"), NOTHING),
    "claim": {"token": str, **LEASED},
    "read_back": {"token": str},
    "renew": {**FENCED, **LEASED},
    **dict.fromkeys(("start", "progress", "phase", "give_back"), FENCED),
    "settle": {**FENCED, "state": str, "outcome": str},
    **dict.fromkeys(("take_duty", "renew_duty"), LEASED_DUTY),
    "release_duty": DUTY,
    "fire": {"schedule": str},
    "take_messages": {"token": str, "seconds": NUMBER},
    "settle_message": {"token": str, "message": int},
}

# Texts that come again and again, and are kept: one of each is enough.
SHARED = ("op", "who", "token", "kind", "target", "node", "state", "to", "digest")

EVIDENCE = frozenset(
    {
        *("clients", "claims", "duties", "schedules", "retention", "handlers", "events", "edges"),
        *("faults", "processes", "crews", "deliveries", "outbox"),
        *("jobs", "messages", "duty_rows", "schedule_rows", "counts"),
    }
)


class NotAHistory(Exception):
    """Line, what was found, what is wanted."""


def read(lines: Iterable[str]) -> Iterator[tuple[int, Record]]:
    """Each line with its number, from 1; the first is the header. Raises `NotAHistory`."""
    last_seq, count = -1, 0
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        record = _parsed(number, text)
        count += 1
        name = _checked(number, record)
        if (count == 1) != (name == "header"):
            raise NotAHistory(f"line {number}: a history begins with its one header; found {name}")
        if name == "header":
            _check_header(number, record)
        seq = record.get("seq", last_seq + 1) if "seq" in FIELDS[name] else last_seq + 1
        if "seq" in FIELDS[name]:
            if seq <= last_seq:
                raise NotAHistory(f"line {number}: seq {seq} after {last_seq}; it must grow")
            last_seq = seq
        yield number, record
    if not count:
        raise NotAHistory("the file is empty; a history begins with a header")


def digest_of(record: Record) -> str | None:
    """Of the payload, as it stands there or is told. None = neither is there."""
    if record.get("digest") is not None:
        return str(record["digest"])
    if "payload" not in record:
        return None
    text = json.dumps(record["payload"], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _parsed(number: int, text: str) -> Record:
    try:
        record: Any = json.loads(text)
    except ValueError as error:
        raise NotAHistory(f"line {number}: no JSON: {error}") from None
    if not isinstance(record, dict):
        raise NotAHistory(f"line {number}: a JSON object is wanted")
    return shared(record)  # pyright: ignore[reportUnknownArgumentType] - fields are checked next


def shared(record: Record) -> Record:
    for name in SHARED:
        text = record.get(name)
        if type(text) is str:
            record[name] = sys.intern(text)
    return record


def _checked(number: int, record: Record) -> str:
    name = record.get("record")
    fields = FIELDS.get(name) if isinstance(name, str) else None
    if not isinstance(name, str) or fields is None:
        known = ", ".join(FIELDS)
        raise NotAHistory(f"line {number}: record is {name!r}; one of {known} is wanted")
    _check_fields(number, record, fields)
    if name == "call":
        wanted = OPERATIONS.get(record["op"])
        if wanted is None:
            raise NotAHistory(f"line {number}: op is {record['op']!r}; README.md lists them")
        _check_fields(number, record, wanted)
    elif name == "reply" and record["status"] not in STATUSES:
        raise NotAHistory(f"line {number}: status is {record['status']!r}; one of {STATUSES}")
    return name


def _check_fields(number: int, record: Record, fields: Fields) -> None:
    for field, wanted in fields.items():
        if not isinstance(record.get(field), wanted):
            found = record.get(field)
            raise NotAHistory(
                f"line {number}: {field} of {record['record']} is {found!r}; {wanted} is wanted"
            )


def _check_header(number: int, record: Record) -> None:
    if record["format"] != FORMAT:
        raise NotAHistory(f"line {number}: format {record['format']}; {FORMAT} is wanted")
    unknown = set(record["records"]) - EVIDENCE
    if unknown:
        raise NotAHistory(
            f"line {number}: records has {sorted(unknown)}; known: {sorted(EVIDENCE)}"
        )
