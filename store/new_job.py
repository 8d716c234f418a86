"""From what a program asks for to the job that is wanted, checked. Pure. The SQL functions of
PostgreSQL say the same in the same words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from musterd.config.faults import Unfit
from musterd.config.job_options import BY_NAME, KIND_LENGTH_MAX, NAMES, SECONDS, URL, JobOption
from musterd.config.webhook_urls import check_webhook_url
from musterd.store.errors import InputRefused
from musterd.store.jobs import NewJob
from musterd.store.payload import SUSPECT, PayloadLimits, check_payload

# A pair of kind and payload, or a mapping with `kind` and options.
JobWanted: TypeAlias = tuple[str, Any] | Mapping[str, Any]

LIMITS = PayloadLimits(max_bytes=1_048_576, max_depth=64)  # of the database itself
PLAIN_LENGTH_MAX = 100_000
# 64 levels, opened and closed: what is no longer is not too deep, and holds no number beyond a
# double, which has more than 300 digits.
SHORT_LENGTH_MAX = 128
_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def new_job(kind: str, payload: Any, options: Mapping[str, Any]) -> NewJob:
    """Raises `InputRefused`, which names the option, what was found and what is wanted. An option
    that is None is not given; a payload that is None is an empty object.
    """
    for name in options:
        if name not in BY_NAME:
            raise InputRefused(f"unknown option {name!r}: options are {', '.join(NAMES)}")
    given = {name: value for name, value in options.items() if value is not None}
    checked = {name: _checked(BY_NAME[name], value) for name, value in given.items()}
    for option in map(BY_NAME.__getitem__, given):
        if option.excludes in given:
            pair = f"{option.excludes} and {option.name}"
            raise InputRefused(f"{pair} exclude each other: give one of them")
        if option.needs is not None and option.needs not in given:
            raise InputRefused(f"{option.name}: found without {option.needs}: give both of them")
    return NewJob(_kind(kind), payload_text(payload), **checked)


def new_jobs(wanted: Iterable[JobWanted], before: int = 0) -> list[NewJob]:
    """Each is a pair (kind, payload), or a mapping with `kind`, `payload` and options. `before`:
    how many of the same call come before these.
    """
    return [_one(one, number) for number, one in enumerate(wanted, start=before + 1)]


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


def _one(wanted: JobWanted, number: int) -> NewJob:
    try:
        try:
            if isinstance(wanted, tuple):
                kind, payload = wanted
                return NewJob(_kind(kind), payload_text(payload))
            options = dict(wanted)
        except (TypeError, ValueError):
            shapes = "a pair of kind and payload, or a mapping of options"
            raise InputRefused(f"found {_found(wanted)}, wanted {shapes}") from None
        return new_job(options.pop("kind", None), options.pop("payload", None), options)
    except InputRefused as error:
        raise InputRefused(f"job {number}: {error}") from None


def _kind(kind: object) -> str:
    if isinstance(kind, str) and 1 <= len(kind) <= KIND_LENGTH_MAX:
        return kind
    found = f"{len(kind)} characters" if isinstance(kind, str) else _found(kind)
    raise InputRefused(f"kind: found {found}, wanted a name of 1 to {KIND_LENGTH_MAX} characters")


def _checked(option: JobOption, value: Any) -> Any:
    if not option.type.fits(value):
        found = f"found {_found(value)}, " if option.type.is_shown else ""
        raise InputRefused(f"{option.name}: {found}wanted {option.type.wanted}")
    if option.type is SECONDS:
        return float(value)
    if option.type is URL:
        try:
            check_webhook_url(value)
        except Unfit as unfit:
            raise InputRefused(f"{option.name}: {unfit}") from None
    return value


def _found(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value) if isinstance(value, int | float | str) else type(value).__name__
