"""What comes into the store is checked here: payloads, and the jobs that a program asks for. Pure.

The SQL functions of PostgreSQL say the same in the same words.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias, cast

import attrs

from musterd.config.faults import Unfit
from musterd.config.job_options import BY_NAME, KIND_LENGTH_MAX, NAMES, SECONDS, URL, JobOption
from musterd.config.webhook_urls import check_webhook_url
from musterd.store.errors import InputRefused
from musterd.store.jobs import NewJob

PATH_LENGTH_MAX = 120
SHOWN_LENGTH_MAX = 30
DIGITS_MAX = 310  # more than the largest double has before its point
LARGEST = 17976931348623157 * 10**292  # of numbers: the largest double as it is written
OPENERS_MAX = 300  # a text with fewer brackets than this cannot nest too deep to be written again
PLACES_MAX = 16_383  # behind the point
EXPONENT_DIGITS_MAX = 9
TOKENS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["\[\]{},]', re.DOTALL)
SURROGATE = re.compile("[\ud800-\udfff]")
# Without any of these JSON holds no NUL, no lone surrogate and no number that needs a second look.
SUSPECT = re.compile("[\\\\\ud800-\udfff]|[0-9][eE]|[0-9]{300}|NaN|Infinity")
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@attrs.frozen
class PayloadLimits:
    max_bytes: int  # in UTF-8
    max_depth: int  # `[[1]]` is two deep


class PayloadInvalid(Exception):
    """A stored payload that cannot be handed to a job. Fails that job and no other."""


def check_payload(text: str, limits: PayloadLimits) -> None:
    """Raises `InputRefused` for what is no JSON, too large, too deep, or what a store can't keep.

    That is: NUL, lone surrogates, NaN, the infinities, and numbers beyond a double's range. The
    message says where it stands, what was found and what is wanted.
    """
    size_bytes = len(text.encode("utf-8", "surrogatepass"))
    if size_bytes > limits.max_bytes:
        raise InputRefused(
            f"payload: found {size_bytes} bytes, wanted at most {limits.max_bytes}"
            " ([limits] max_payload_bytes)"
        )
    # Before parsing: the parser recurses.
    place = _first_too_deep(text, limits.max_depth)
    if place is not None:
        raise InputRefused(
            f"payload at {place}: found nesting deeper than {limits.max_depth}, wanted at most"
            f" {limits.max_depth} ([limits] max_payload_depth)"
        )
    _, fault = _parsed(text)
    if fault is not None:
        raise InputRefused(f"payload{fault}")


def decode_payload(text: str, what: str = "payload") -> object:
    """The value of a JSON text; `what` it is stands in complaints. Raises `PayloadInvalid` alone,
    if it has none.
    """
    value, fault = _parsed(text, checks=SUSPECT.search(text) is not None)
    if fault is not None:
        raise PayloadInvalid(f"{what}{fault}")
    return value


def decoded(text: str | None) -> object:
    """The value of a JSON text; the text itself, where it has none that could be written again."""
    if text is None:
        return None
    try:
        value = decode_payload(text)
        if text.count("[") + text.count("{") > OPENERS_MAX:
            json.dumps([[[[value]]]])  # what was read may still be too deep to be written
    except (PayloadInvalid, RecursionError):
        return text
    return value


_read = json.JSONDecoder().raw_decode  # json.loads also looks for blanks at both ends


def _plain_value(text: str) -> object:
    try:
        value, end = _read(text)
    except ValueError:
        return json.loads(text)
    return value if end == len(text) else json.loads(text)


@attrs.frozen
class _NoDouble:
    """Stands in a parsed value where a number was that no double can hold."""

    text: str


def _parsed(text: str, *, checks: bool = True) -> tuple[Any, str | None]:
    """The value, and what is wrong with it, and where."""
    hidden: list[tuple[str, Any]] = []  # values that others of the same key are in the way of
    try:
        if not checks:
            return _plain_value(text), None
        value = json.loads(
            text,
            parse_int=_integer,
            parse_float=_real,
            parse_constant=_NoDouble,
            object_pairs_hook=partial(_object, hidden),
        )
    except (ValueError, RecursionError) as error:
        return None, f": {_not_json(error)}, wanted one JSON value"
    fault = _first_fault(value) or _first_hidden(hidden)
    return value, None if fault is None else f" at {fault}"


def _object(hidden: list[tuple[str, Any]], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a key that comes twice the last value counts; the others, which the store is handed too,
    go into `hidden`.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        left = set(found)
        for key, value in reversed(pairs):
            if key in left:
                left.remove(key)
            else:
                hidden.append((key, value))
    return found


def _integer(text: str) -> int | _NoDouble:
    if len(text) > DIGITS_MAX:
        return _NoDouble(text)
    number = int(text)
    return number if -LARGEST <= number <= LARGEST else _NoDouble(text)


def _real(text: str) -> float | _NoDouble:
    number = float(text)
    if _is_too_fine(text):
        return _NoDouble(text)
    if abs(number) < sys.float_info.max:
        return number
    # What rounds to the largest double may lie beyond what PostgreSQL is told to take.
    return number if math.isfinite(number) and abs(Decimal(text)) <= LARGEST else _NoDouble(text)


def _is_too_fine(text: str) -> bool:
    """Whether PostgreSQL would not keep all of its places, or could not read its exponent."""
    if len(text) <= PLACES_MAX and "e" not in text and "E" not in text:
        return False
    mantissa, _, exponent = text.lower().partition("e")
    if len(exponent.lstrip("+-0")) > EXPONENT_DIGITS_MAX:
        return True
    return len(mantissa.partition(".")[2]) - int(exponent or 0) > PLACES_MAX


def _not_json(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno} column {error.colno}: found no JSON ({error.msg})"
    if isinstance(error, RecursionError):
        return "found nesting too deep to be read"
    return f"found no JSON ({error})"


def _first_fault(value: Any) -> str | None:
    """Where the first value stands that must not be there, what it is, and what is wanted."""
    # Iterators on a stack of our own: a payload may be deeper than Python's.
    path: list[int | str] = []
    open_ones: list[Iterator[tuple[int | str, Any]]] = [iter([("", value)])]
    while open_ones:
        step = next(open_ones[-1], None)
        if step is None:
            open_ones.pop()
            continue
        key, inner = step
        path[len(open_ones) - 1 :] = [key]
        fault = (isinstance(key, str) and _text_fault(key)) or _fault_of(inner)
        if fault:
            return f"{_path_text(path[1:])}: {fault}"
        within = _items(inner)
        if within is not None:
            open_ones.append(within)
    return None


def _first_hidden(hidden: Sequence[tuple[str, Any]]) -> str | None:
    """The same of these; nobody knows the way to them any more."""
    for key, value in hidden:
        fault = _first_fault(value)
        if fault is not None:
            return f"$…{_step_text(key)}{fault.removeprefix('$')}"
    return None


def _items(value: Any) -> Iterator[tuple[int | str, Any]] | None:
    """The values in a list or an object, each with its place; None for what holds none."""
    if isinstance(value, dict):
        return iter(cast("dict[int | str, Any]", value).items())
    if isinstance(value, list):
        return iter(enumerate(cast("Sequence[Any]", value)))
    return None


def _fault_of(value: Any) -> str | None:
    if isinstance(value, str):
        return _text_fault(value)
    if isinstance(value, _NoDouble):
        length = len(value.text)
        found = value.text if length <= SHOWN_LENGTH_MAX else f"a number of {length} digits"
        return f"found {found}, wanted a finite number within a double's range"
    return None


def _text_fault(text: str) -> str | None:
    if "\0" in text:
        return "found the character NUL (\\u0000), wanted text without it"
    if not text.isascii() and (found := SURROGATE.search(text)):
        return f"found a lone surrogate (\\u{ord(found[0]):04x}), wanted whole characters"
    return None


def _first_too_deep(text: str, max_depth: int) -> str | None:
    """Where the first list or object stands that is too deep. Looks at brackets and strings."""
    path: list[int | str] = []  # one step a list or object that is open
    last_text = ""
    for match in TOKENS.finditer(text):
        token = match[0]
        if token == '"':
            return None  # a string without end: no JSON, as the parser will say
        if token[0] == '"':
            last_text = token
        elif token == ",":
            _next_item(path)
        elif token in "]}":
            del path[-1:]
        else:
            if path and path[-1] == "":
                path[-1] = last_text
            if len(path) >= max_depth:
                return _path_text([_key(step) for step in path])
            path.append(0 if token == "[" else "")
    return None


def _next_item(path: list[int | str]) -> None:
    if path:
        step = path[-1]
        path[-1] = step + 1 if isinstance(step, int) else ""


def _key(step: int | str) -> int | str:
    if isinstance(step, int):
        return step
    try:
        return str(json.loads(step))
    except ValueError:
        return step.strip('"')


def _path_text(path: list[int | str]) -> str:
    text = "$" + "".join(_step_text(step) for step in path)
    return text if len(text) <= PATH_LENGTH_MAX else text[: PATH_LENGTH_MAX - 1] + "…"


def _step_text(step: int | str) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if PLAIN_NAME.fullmatch(step) else f"[{json.dumps(step)}]"


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
