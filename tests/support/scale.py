"""How much of the tests that could go on for ever is done: `MUSTERD_TEST_SCALE`, a factor."""

import os

_NAME = "MUSTERD_TEST_SCALE"


def scaled(count: int) -> int:
    """So many of something, at least one: more on a machine that has the night for it."""
    return max(1, round(count * factor()))


def factor() -> float:
    given = os.environ.get(_NAME, "1")
    try:
        found = float(given)
    except ValueError:
        found = 0.0
    if not 0 < found <= 100_000:
        raise ValueError(f"{_NAME}: found {given!r}, wanted a number above 0, at most 100,000")
    return found
