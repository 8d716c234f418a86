"""The page on verifying tells each rule, each exit code and the figures of the code."""

from __future__ import annotations

import re
from typing import Any

from musterd.console.output import Exit
from musterd.console.verify.judge import OVERLAP, Judge, verdict_object
from musterd.console.verify.rules import KEPT_MAX, Rule
from tests.support.pages import page

PAGE = page("verify.md")


def test_each_rule_has_its_row() -> None:
    assert re.findall(r"^\| `([a-z ]+)` \|", PAGE, re.MULTILINE) == [rule.value for rule in Rule]


def test_each_exit_has_its_row() -> None:
    told = {int(code) for code in re.findall(r"^\| `(\d+)` \|", PAGE, re.MULTILINE)}
    assert told == set(Exit) - {Exit.WRONG_STATE}


def test_figures_are_those_of_the_code() -> None:
    assert f"at most {KEPT_MAX} of each\nrule" in PAGE
    assert OVERLAP.total_seconds() == 10
    assert "ten seconds are allowed for that" in PAGE


def test_each_key_of_the_object_is_named() -> None:
    told = verdict_object(Judge(), None)
    rules: Any = told["rules"]
    for key in (*told, *rules[0]):
        assert f"`{key}`" in PAGE, key
