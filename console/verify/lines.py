"""Reading a log of events from lines of JSON, as `musterd events --json` writes them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, cast

from musterd.store.events import Event

ID_MAX = 2**63 - 1


class NoLog(ValueError):
    """What was given is no log of events; says which line is wrong, and how."""


def events_of(lines: Iterable[str], tenant: str | None) -> Iterator[Event]:
    """The events of one tenant; None = all must be of the same. Lines that say by `record` that
    they are something else, as in a history for the checker of the tests, are skipped. Raises
    NoLog.
    """
    seen = tenant
    for number, line in enumerate(lines, start=1):
        if line.isspace():
            continue
        told = _object(number, line)
        if told.get("record", "event") != "event":
            continue
        whose = told.get("tenant", seen)
        if seen is not None and whose != seen:
            if tenant is not None:
                continue
            raise NoLog(f"line {number} is of tenant {whose!r}, others are of {seen!r}")
        seen = whose
        yield _event(number, told)


def _object(number: int, line: str) -> Mapping[str, Any]:
    try:
        told = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NoLog(f"line {number} is no JSON: {error}") from None
    if not isinstance(told, dict):
        raise NoLog(f"line {number} is no object")
    return cast("Mapping[str, Any]", told)


def _event(number: int, told: Mapping[str, Any]) -> Event:
    get = told.get
    id_, at, type_, job_id = get("id"), get("at"), get("type"), get("job_id")
    data, kind, target = get("data"), get("kind"), get("target")
    if id_ is None or not _is_id(id_):
        raise NoLog(f"line {number}: `id` is no position")
    if not isinstance(type_, str):
        raise NoLog(f"line {number}: `type` is no text")
    if job_id is not None and not _is_id(job_id):
        raise NoLog(f"line {number}: `job_id` is no id")
    if not (kind is None or isinstance(kind, str)) or not (
        target is None or isinstance(target, str)
    ):
        raise NoLog(f"line {number}: `kind` or `target` is no text")
    if data is not None and not isinstance(data, dict):
        raise NoLog(f"line {number}: `data` is no object")
    return Event(id_, _moment(number, at), type_, job_id, kind, target, data or {})


def _is_id(value: object) -> bool:
    return type(value) is int and 0 < value <= ID_MAX


def _moment(number: int, text: object) -> datetime:
    try:
        moment = datetime.fromisoformat(text if isinstance(text, str) else "")
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise NoLog(f"line {number}: `at` is no time with a zone")
    return moment
