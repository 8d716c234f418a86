"""Payloads: what is refused, and that the rest comes out as it went in."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from random import Random
from typing import Any

import attrs

from musterd.store.errors import InputRefused
from musterd.store.payload import PayloadInvalid, PayloadLimits, check_payload, decode_payload
from tests.fuzz.mutating import changed, crossed
from tests.fuzz.target import Wrong

LIMITS = PayloadLimits(max_bytes=4_000, max_depth=12)
DEPTH_MAX = 14
SCALARS = (
    *("0", "-0", "1", "-1", "1.5", "1e308", "1e309", "-1e400", "1e-400", "5e-324", "0.1", "1E5"),
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


def json_text(dice: Random, depth: int) -> str:
    """JSON, mostly."""
    choice = dice.random()
    if depth <= 0 or choice < 0.4:
        return dice.choice(SCALARS)
    parts = [json_text(dice, depth - dice.randint(1, 4)) for _ in range(dice.randint(0, 3))]
    if choice < 0.7:
        return f"[{', '.join(parts)}]"
    return "{" + ",".join(f"{dice.choice(KEYS)}: {part}" for part in parts) + "}"


@attrs.frozen
class Payloads:
    name: str = "payload"
    share: int = 40

    def make(self, dice: Random, corpus: Sequence[bytes]) -> bytes:
        whole = json_text(dice, dice.randint(0, DEPTH_MAX)).encode("utf-8", "surrogatepass")
        if dice.random() < 0.1 and corpus:
            whole = crossed(dice, whole, dice.choice(corpus))
        return whole if dice.random() < 0.5 else changed(dice, whole, PIECES, 3)

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


def why_refused(text: str) -> str | None:
    """By the rules, and the parser of the standard library; None = it is to be taken."""
    if len(text.encode("utf-8", "surrogatepass")) > LIMITS.max_bytes:
        return "too large"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "no JSON"
    return _why_value(value, LIMITS.max_depth)


def _why_value(value: Any, depth_left: int) -> str | None:
    if isinstance(value, str):
        bad = re.search("[\0\ud800-\udfff]", value)
        return f"the character {bad[0]!r}" if bad else None
    if isinstance(value, float):
        return None if math.isfinite(value) else "a number that is none"
    if isinstance(value, int):
        return "a number beyond a double" if abs(value) >= 2**1024 - 2**970 else None
    if not isinstance(value, dict | list):
        return None
    if depth_left == 0:
        return "nested too deep"
    inner = [*value, *value.values()] if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
    found = (
        _why_value(one, depth_left - 1 if isinstance(one, dict | list) else 1) for one in inner
    )  # pyright: ignore[reportUnknownVariableType] - JSON
    return next((why for why in found if why), None)


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types, down to the sign of zero."""
    return repr(one) == repr(other)
