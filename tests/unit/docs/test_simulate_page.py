"""The page on simulating tells each key, each exit code and the figures of the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from musterd.console.output import Exit
from musterd.console.simulate.tuning import (
    COUNT_MAX,
    GAIN_SHARE,
    SIMULATIONS_MAX,
    Aim,
    advice_object,
    tune,
)
from musterd.console.simulate.verb import QUANTILE, WAIT_SECONDS, Comparison, comparison_object
from musterd.manager.scaling.model.figures import figures_object
from musterd.manager.scaling.model.reading import ATTEMPTS_MAX
from musterd.manager.scaling.model.simulation import simulate
from tests.support.pages import page, table
from tests.support.traces import rules, trace_of

PAGE = page("simulate.md")
TRACE = trace_of([(0.5, 1.0)] * 3)


def keys_of(told: Mapping[str, Any]) -> Iterable[str]:
    for key, value in told.items():
        yield key
        if isinstance(value, dict) and key not in ("changed", "settings"):
            yield from keys_of(value)  # pyright: ignore[reportUnknownArgumentType] - JSON


def test_each_key_is_told() -> None:
    rules_ = [rules(), rules(max_count=9)]
    found = Comparison(TRACE, rules_, [simulate(TRACE, one) for one in rules_])
    told = comparison_object(found, "default")
    advice = advice_object(tune(TRACE, rules(), Aim(0.95, 1.0)), TRACE, rules(), "default")
    missing = {key for key in (*keys_of(told), *keys_of(advice)) if f"`{key}`" not in PAGE}
    assert missing == set()


def test_each_figure_has_its_row() -> None:
    (figures,) = Comparison(TRACE, [rules()], [simulate(TRACE, rules())]).figures
    rows = [key for row in table(PAGE, "key", "is") for key in re.findall(r"`(\w+)`", row[0])]
    assert rows == list(figures_object(figures))


def test_each_exit_has_its_row() -> None:
    told = {int(code) for code in re.findall(r"^\| `(\d+)` \|", PAGE, re.MULTILINE)}
    assert told == set(Exit) - {Exit.WRONG_STATE, Exit.UNSUCCESSFUL}


def test_figures_are_those_of_the_code() -> None:
    assert f"At most {ATTEMPTS_MAX:,} attempts" in PAGE
    assert f"at most {SIMULATIONS_MAX} pairs" in PAGE
    assert f"or {COUNT_MAX:,} workers" in PAGE
    assert f"`--quantile` ({QUANTILE:g})" in PAGE
    assert f"`--wait` seconds ({WAIT_SECONDS:g})" in PAGE
    assert GAIN_SHARE == 0.01
    assert "more than a hundredth" in PAGE
