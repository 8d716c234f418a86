"""What a payload may be, where the first fault stands, and how stored ones are read."""

import json
import math
import time
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musterd.store.errors import InputRefused
from musterd.store.input import PayloadInvalid, PayloadLimits, check_payload, decode_payload

LIMITS = PayloadLimits(max_bytes=1000, max_depth=4)

GOOD = [
    "{}",
    " [1, 2.5, -3e-7, null, true, false] ",
    '"\\u00e9 \\ud83e\\udd80 é 🦀"',
    '{"a": {"b": {"c": {}}}}',
    "[[[[]]]]",
    '["[[[[[[[{{{{{", "\\"[[[[[[[["]',
    str(2**64),
    "-" + "9" * 308,
    "1.7976931348623157e308",
    "1e-999",
    "[1e-16383, 0e99999, -1.7976931348623157e+308, 1e-0000000000001]",
    "17976931348623157" + "0" * 292,
    '{"a": 1, "a": 2, "b": [], "b": {}}',
    '{"": ""}',
]

BAD = {
    "": "line 1 column 1",
    "{": "line 1 column 2",
    '{"a": 1,}': "found no JSON",
    "[1] 2": "column 5",
    "{'a': 1}": "found no JSON",
    '"' + "\n" + '"': "found no JSON",
    '"\x00"': "found no JSON",
    "\ufeff{}": "BOM",
    '"unended': "found no JSON",
    "[NaN]": r"\$\[0\]: found NaN, wanted a finite",
    '{"a": [1, -Infinity]}': r"\$\.a\[1\]: found -Infinity",
    '{"a": {"b c": Infinity}}': r'\$\.a\["b c"\]: found Infinity',
    "1e400": r"\$: found 1e400",
    '{"n": -1e999}': r"\$\.n: found -1e999",
    "[1" + "0" * 309 + "]": r"\$\[0\]: found a number of 310 digits",
    "9" * 309: "found a number of 309 digits",
    '{"a": ["x", "b\\u0000c"]}': r"\$\.a\[1\]: found the character NUL",
    '{"a\\u0000": 1}': "found the character NUL",
    '["\\ud800"]': r"\$\[0\]: found a lone surrogate \(\\ud800\)",
    '{"k": "\\udc00\\ud800"}': r"\$\.k: found a lone surrogate \(\\udc00\)",
    '"\udfff"': r"\$: found a lone surrogate",
    "[[[[[]]]]]": r"\$\[0\]\[0\]\[0\]\[0\]: found nesting deeper than 4",
    '{"a": 1, "b": [0, {"c": [[]]}]}': r"\$\.b\[1\]\.c\[0\]: found nesting",
    '{"x y": [[[[]]]]}': r'\$\["x y"\]\[0\]\[0\]\[0\]: found nesting',
    '"' + "é" * 500 + '"': "found 1002 bytes, wanted at most 1000",
}


@pytest.mark.parametrize("text", GOOD)
def test_a_good_payload_is_accepted_and_read_as_json_says(text: str) -> None:
    check_payload(text, LIMITS)
    assert decode_payload(text) == json.loads(text)


FOUND_BY_FUZZING = {
    '{"a": NaN, "a": 1}': "$….a: found NaN",
    '[{"a": {"b": "\\ud800"}, "\\u0061": 1, "c": 2}]': "$….a.b: found a lone surrogate",
    '{"a": ["\\u0000"], "a": []}': "$….a[0]: found the character NUL",
    "1.7976931348623157081e308": "$: found 1.7976931348623157081e308",
    "17976931348623157" + "0" * 291 + "1": "$: found a number of 309 digits",
    "1e-20000": "$: found 1e-20000",
    "0e-99999999999": "$: found 0e-99999999999",
    "[0e9999999999]": "$[0]: found 0e9999999999",
}


@pytest.mark.parametrize("text", FOUND_BY_FUZZING)
def test_what_no_store_could_keep_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InputRefused) as refused:
        check_payload(text, LIMITS)
    assert str(refused.value).startswith(f"payload at {FOUND_BY_FUZZING[text]}")
    with pytest.raises(PayloadInvalid):
        decode_payload(text)


@pytest.mark.parametrize("text", BAD, ids=ascii)
def test_a_bad_payload_is_refused_and_told_where_and_why(text: str) -> None:
    with pytest.raises(InputRefused, match=BAD[text]):
        check_payload(text, LIMITS)


NOT_DECODABLE = [
    "",
    "{",
    "[NaN]",
    "1e400",
    "9" * 5000,
    '["\\ud800"]',
    '"\\u0000"',
    "[" * 100_000,
    "[" * 100_000 + "]" * 100_000,
    '{"a":' * 50_000 + "1" + "}" * 50_000,
]


@pytest.mark.parametrize("text", NOT_DECODABLE, ids=lambda text: ascii(text[:20]))
def test_what_cannot_be_decoded_is_one_kind_of_error(text: str) -> None:
    with pytest.raises(PayloadInvalid, match=r"^payload"):
        decode_payload(text)


def test_any_depth_is_refused_without_recursion() -> None:
    wide = PayloadLimits(max_bytes=10**7, max_depth=64)
    for opening in ("[", '{"a":', '[{"b":'):
        with pytest.raises(InputRefused, match="deeper than 64"):
            check_payload(opening * 200_000, wide)


def test_a_limit_of_depth_beyond_the_parsers_own_is_refused_all_the_same() -> None:
    boundless = PayloadLimits(max_bytes=10**7, max_depth=10**6)
    with pytest.raises(InputRefused, match="too deep to be read"):
        check_payload("[" * 100_000 + "]" * 100_000, boundless)


def test_keys_that_come_twice_within_each_other_are_looked_at_once() -> None:
    inner = f"[{','.join(['1'] * 400_000)}]"
    text = '{"a":1,"a":' * 60 + inner + "}" * 60
    began = time.process_time()
    check_payload(text, PayloadLimits(max_bytes=10**6, max_depth=64))
    assert time.process_time() - began < 2


@pytest.mark.parametrize("piece", ['"\\"', "\\", '"', '"a', "[", "{,", '"\\\\', "]["])
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (250_000 // len(piece))
    began = time.perf_counter()
    with pytest.raises(InputRefused):
        check_payload(text, PayloadLimits(max_bytes=10**6, max_depth=64))
    assert time.perf_counter() - began < 2


def test_a_long_place_is_cut() -> None:
    text = '{"' + "k" * 500 + '": NaN}'
    with pytest.raises(InputRefused) as refused:
        check_payload(text, LIMITS)
    assert len(str(refused.value)) < 250


scalars = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=8)
numbers = st.floats(allow_nan=True, allow_infinity=True)
values = st.recursive(
    scalars | numbers,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


def depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(depth, inner_values(value)), default=0)


def inner_values(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return list(value)


def holds_only_what_can_be_kept(value: Any) -> bool:
    if isinstance(value, dict):
        names = cast("dict[str, Any]", value)
        return all(map(holds_only_what_can_be_kept, [*names, *names.values()]))
    if isinstance(value, list):
        return all(map(holds_only_what_can_be_kept, inner_values(value)))
    if isinstance(value, float):
        return math.isfinite(value)
    return not (isinstance(value, str) and "\0" in value)


@given(values, st.booleans(), st.integers(0, 5), st.integers(0, 60))
def test_exactly_what_can_be_kept_is_accepted(
    value: object, escaped: bool, max_depth: int, max_bytes: int
) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    fits = (
        holds_only_what_can_be_kept(value)
        and depth(value) <= max_depth
        and len(text.encode()) <= max_bytes
    )
    try:
        check_payload(text, PayloadLimits(max_bytes, max_depth))
    except InputRefused:
        assert not fits
    else:
        assert fits
        assert decode_payload(text) == value


@given(st.text(alphabet='[]{}",:\\u0dn1eN-. a\ud800\0é', max_size=30))
def test_any_text_is_accepted_or_refused_and_never_more(text: str) -> None:
    try:
        check_payload(text, PayloadLimits(1000, 64))
    except InputRefused:
        with pytest.raises(PayloadInvalid):
            decode_payload(text)
    else:
        assert json.dumps(decode_payload(text)).encode()
