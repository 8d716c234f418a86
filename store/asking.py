"""What a program asks for when it wants a job, checked. Pure. The SQL functions of PostgreSQL say
the same in the same words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from musterd.config.faults import Unfit
from musterd.config.webhook_urls import check_webhook_url
from musterd.store.errors import InputRefused
from musterd.store.job import DedupScope, NewJob
from musterd.store.payload import SUSPECT, PayloadLimits, check_payload

Asked: TypeAlias = tuple[str, Any] | Mapping[str, Any]

LIMITS = PayloadLimits(max_bytes=1_048_576, max_depth=64)  # of the database itself
OPTIONS = (
    *("payload", "priority", "run_at", "delay_seconds", "dedup_key", "dedup_scope", "hold"),
    *("max_attempts", "target", "webhook"),
)
KIND_LENGTH_MAX = 100
TEXT_LENGTH_MAX = 200  # of a key or a target
PLAIN_LENGTH_MAX = 100_000
# 64 levels, opened and closed: what is no longer is not too deep, and holds no number beyond a
# double, which has more than 300 digits.
SHORT_LENGTH_MAX = 128
_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
SECONDS_MAX = 3_153_600_000  # a hundred years


def new_job(kind: str, payload: Any, options: Mapping[str, Any]) -> NewJob:
    """Raises `InputRefused`, which names the option, what was found and what is wanted. An option
    that is None is not asked for; a payload that is None is an empty object.
    """
    for name in options:
        if name not in OPTIONS:
            raise InputRefused(f"unknown option {name!r}: options are {', '.join(OPTIONS)}")
    asked = {name: value for name, value in options.items() if value is not None}
    if "run_at" in asked and "delay_seconds" in asked:
        raise InputRefused("run_at and delay_seconds exclude each other: give one of them")
    key = _short(asked, "dedup_key")
    return NewJob(
        kind=_kind(kind),
        payload=payload_text(payload),
        priority=_whole(asked, "priority", -32768, 32767) or 0,
        delay_seconds=_delay(asked.get("delay_seconds")),
        run_at=_moment(asked.get("run_at")),
        max_attempts=_whole(asked, "max_attempts", 1, 10_001),
        hold=_flag(asked.get("hold", False)),
        dedup_key=key,
        dedup_scope=_scope(asked.get("dedup_scope"), key),
        target=_short(asked, "target"),
        webhook=_webhook(asked.get("webhook")),
    )


def new_jobs(asked: Iterable[Asked], before: int = 0) -> list[NewJob]:
    """Each is a pair (kind, payload), or a mapping with `kind`, `payload` and options. `before`:
    how many of the same call come before these.
    """
    return [_one(one, number) for number, one in enumerate(asked, start=before + 1)]


def payload_text(payload: Any) -> str:
    """The payload as JSON. Raises `InputRefused` for what is none, or what no store can keep."""
    if payload is None:
        return "{}"
    try:
        text = _json_text(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputRefused(f"payload: {error}, wanted what JSON can hold") from None
    # What we have just written is JSON: most of it needs no second look.
    if not (len(text) <= SHORT_LENGTH_MAX and text.isascii() and "\\" not in text) and (
        len(text) > PLAIN_LENGTH_MAX
        or text.count("[") + text.count("{") > LIMITS.max_depth
        or SUSPECT.search(text)
    ):
        check_payload(text, LIMITS)
    return text


def as_options(job: NewJob) -> dict[str, Any]:
    """The job as the SQL function enqueue_many takes it."""
    return {
        "kind": job.kind,
        "payload": json.loads(job.payload),
        "priority": job.priority,
        "run_at": None if job.run_at is None else job.run_at.isoformat(),
        "delay_seconds": job.delay_seconds,
        "max_attempts": job.max_attempts,
        "hold": job.hold,
        "dedup_key": job.dedup_key,
        "dedup_scope": None if job.dedup_key is None else job.dedup_scope,
        "target": job.target,
        "webhook": job.webhook,
    }


def _prepared_encoder() -> Callable[[Any], str]:
    """As `_ENCODER.encode`, which prepares itself anew at each call: that takes longer than to
    write a short payload. What contains itself is too deep for this one.
    """
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # an interpreter whose json is written in Python
        return _ENCODER.encode
    quote, default = json.encoder.encode_basestring, _ENCODER.default
    chunks_of = make(None, default, quote, None, ":", ",", False, False, False)
    return lambda value: "".join(chunks_of(value, 0))


_json_text = _prepared_encoder()


def _one(asked: Asked, number: int) -> NewJob:
    try:
        try:
            if isinstance(asked, tuple):
                kind, payload = asked
                return NewJob(_kind(kind), payload_text(payload))
            options = dict(asked)
        except (TypeError, ValueError):
            wanted = "a pair of kind and payload, or a mapping of options"
            raise InputRefused(f"found {_found(asked)}, wanted {wanted}") from None
        return new_job(options.pop("kind", None), options.pop("payload", None), options)
    except InputRefused as error:
        raise InputRefused(f"job {number}: {error}") from None


def _kind(kind: object) -> str:
    if isinstance(kind, str) and 1 <= len(kind) <= KIND_LENGTH_MAX:
        return kind
    found = f"{len(kind)} characters" if isinstance(kind, str) else _found(kind)
    raise InputRefused(f"kind: found {found}, wanted a name of 1 to {KIND_LENGTH_MAX} characters")


def _whole(asked: Mapping[str, Any], name: str, smallest: int, largest: int) -> int | None:
    value = asked.get(name)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and smallest <= value <= largest:
        return value
    wanted = f"a whole number, {smallest} to {largest}"
    raise InputRefused(f"{name}: found {_found(value)}, wanted {wanted}")


def _delay(value: Any) -> float | None:
    if value is None:
        return None
    if _is_seconds(value):
        return float(value)
    wanted = f"0 to {SECONDS_MAX} seconds"
    raise InputRefused(f"delay_seconds: found {_found(value)}, wanted {wanted}")


def _is_seconds(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= SECONDS_MAX  # NaN and the infinities are not


def _moment(value: object) -> datetime | None:
    if value is None or (isinstance(value, datetime) and value.tzinfo is not None):
        return value
    raise InputRefused(f"run_at: found {_found(value)}, wanted a datetime with a time zone")


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InputRefused(f"hold: found {_found(value)}, wanted true or false")


def _short(asked: Mapping[str, Any], name: str) -> str | None:
    text = asked.get(name)
    if text is None or (isinstance(text, str) and 1 <= len(text) <= TEXT_LENGTH_MAX):
        return text
    raise InputRefused(f"{name}: wanted a text of 1 to {TEXT_LENGTH_MAX} characters")


def _scope(scope: Any, key: str | None) -> DedupScope:
    if scope is None:
        return "until_finished"
    if scope not in ("until_finished", "forever") and not _is_seconds(scope):
        wanted = f"until_finished, forever, or 0 to {SECONDS_MAX} seconds"
        raise InputRefused(f"dedup_scope: found {_found(scope)}, wanted {wanted}")
    if key is None:
        raise InputRefused("dedup_scope: found without dedup_key: give both of them")
    checked: DedupScope = scope
    return checked


def _webhook(url: Any) -> str | None:
    if url is None:
        return None
    try:
        check_webhook_url(url)
    except Unfit as unfit:
        raise InputRefused(f"webhook: {unfit}") from None
    checked: str = url
    return checked


def _found(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value) if isinstance(value, int | float | str) else type(value).__name__
