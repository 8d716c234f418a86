"""Payloads: what is refused, and that the rest comes out as it went in."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from random import Random
from typing import Any

import attrs

from musterd.store.errors import InputRefused
from musterd.store.input import PayloadInvalid, PayloadLimits, check_payload, decode_payload
from tests.fuzz.mutating import changed, crossed
from tests.fuzz.target import Wrong

LARGEST = Decimal("1.7976931348623157e308")  # of PostgreSQL's own check
LIMITS = PayloadLimits(max_bytes=4_000, max_depth=12)
PLACES_MAX = 16_383  # of a numeric of PostgreSQL
DEPTH_MAX = 14
SCALARS = (
    *("0", "-0", "1", "-1", "1.5", "1e308", "1e309", "-1e400", "1e-400", "5e-324", "0.1", "1E5"),
    *("1e-20000", "5e-3248429148198608349", "0e99999", "0E-99999999999", "1" + "0" * 400 + "e-400"),
    *("0." + "0" * 400 + "1", "1e-16383", "1e-16384", "0." + "1" * 400),
    *(
        "9" * 15,
        "9" * 16,
        "9" * 17,
        "9" * 308,
        "9" * 309,
        "9" * 400,
        "1" + "0" * 308,
        "-" + "9" * 30,
    ),
    *("true", "false", "null", "NaN", "Infinity", "-Infinity", "nan", "tru", "01", "1.", ".5"),
    *('""', '"a"', '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"\\ud83d\\ude00"', '"\\/"'),
    *('"ä"', '"\U0001f600"', '"\\u2028"', '"\u2028"', '"\x7f"', '"\\"', '"\t"', '"\\x"', "'a'"),
)
KEYS = (
    '"a"',
    '"b"',
    '"a"',
    '""',
    '"\\u0061"',
    '"\\u0000"',
    '"\\ud800"',
    '"x y"',
    '"' + "k" * 300 + '"',
)
PIECES = (
    *(b"[" * 30, b"]" * 30, b'{"a":' * 30, b"\\u0000", b"\\ud800", b"\0", b"\xff", b"\xed\xa0\x80"),
    *(
        b'"',
        b"\\",
        b",",
        b":",
        b"{",
        b"}",
        b"[",
        b"]",
        b"1e999",
        b"9" * 400,
        b"NaN",
        b"\xef\xbb\xbf",
    ),
    *(b" " * 50, b"\n", b"\x0c", b"\xc2\xa0", b"-", b".", b"e", b"+", b"//", b"x" * 5_000),
)


def json_text(rng: Random, depth: int) -> str:
    """JSON, mostly."""
    choice = rng.random()
    if depth <= 0 or choice < 0.4:
        return rng.choice(SCALARS)
    parts = [json_text(rng, depth - rng.randint(1, 4)) for _ in range(rng.randint(0, 3))]
    if choice < 0.7:
        return f"[{', '.join(parts)}]"
    return "{" + ",".join(f"{rng.choice(KEYS)}: {part}" for part in parts) + "}"


@attrs.frozen
class Payloads:
    name: str = "payload"
    share: int = 40

    def make(self, rng: Random, corpus: Sequence[bytes]) -> bytes:
        whole = json_text(rng, rng.randint(0, DEPTH_MAX)).encode("utf-8", "surrogatepass")
        if rng.random() < 0.1 and corpus:
            whole = crossed(rng, whole, rng.choice(corpus))
        return whole if rng.random() < 0.5 else changed(rng, whole, PIECES, 3)

    def check(self, whole: bytes) -> None:
        text = text_of(whole)
        wanted = why_refused(text)
        try:
            check_payload(text, LIMITS)
        except InputRefused as refused:
            if wanted is None:
                raise Wrong(f"refused without reason: {refused}") from None
            str(refused).encode()
            self._check_stored(text)
            return
        if wanted is not None:
            raise Wrong(f"taken: {wanted}")
        if not same(decode_payload(text), json.loads(text)):
            raise Wrong("read as something else")

    def _check_stored(self, text: str) -> None:
        """It may have come in by SQL: it fails its job, and that alone."""
        try:
            value = decode_payload(text)
        except PayloadInvalid as invalid:
            str(invalid).encode()
            return
        json.dumps(value, allow_nan=False)


PAYLOAD = Payloads()


def text_of(whole: bytes) -> str:
    """With lone surrogates, as Python hands them over; else what is no UTF-8 is replaced."""
    try:
        return whole.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return whole.decode("utf-8", "replace")


class Pairs(list[tuple[str, Any]]):
    """An object, also with the values of which a later one of the same key is in the way."""


def why_refused(text: str) -> str | None:
    """By the rules, and the parser of the standard library; None = it is to be taken."""
    if len(text.encode("utf-8", "surrogatepass")) > LIMITS.max_bytes:
        return "too large"
    try:
        value = json.loads(text, object_pairs_hook=Pairs, parse_float=exact)
    except (ValueError, RecursionError):
        return "no JSON"
    return _why_value(value, LIMITS.max_depth)


def exact(text: str) -> Decimal | float:
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return math.nan
    places = -int(number.as_tuple().exponent)
    return number if -(10**9) < places <= PLACES_MAX else math.nan


def _why_value(value: Any, depth_left: int) -> str | None:
    if isinstance(value, str):
        bad = re.search("[\0\ud800-\udfff]", value)
        return f"the character {bad[0]!r}" if bad else None
    if isinstance(value, float):
        return "a number that is none, or finer than a store keeps it"
    if isinstance(value, int | Decimal):
        return None if -LARGEST <= value <= LARGEST else "a number beyond a double"
    if isinstance(value, Pairs):
        return _why_list([one for pair in value for one in pair], depth_left)
    return _why_list(value, depth_left) if isinstance(value, list) else None  # pyright: ignore[reportUnknownArgumentType] - JSON


def _why_list(values: Sequence[Any], depth_left: int) -> str | None:
    if depth_left == 0:
        return "nested too deep"
    return next((why for one in values if (why := _why_value(one, depth_left - 1))), None)


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types, down to the sign of zero."""
    return repr(one) == repr(other)


def as_floats(value: Any) -> Any:
    """With all numbers as doubles: PostgreSQL writes `1e308` with all of its digits."""
    if isinstance(value, dict):
        return {key: as_floats(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType] - JSON
    if isinstance(value, list):
        return [as_floats(one) for one in value]  # pyright: ignore[reportUnknownVariableType] - JSON
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
