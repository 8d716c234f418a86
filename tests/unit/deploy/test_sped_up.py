"""Sped-up rules are the shipped ones, but for their durations."""

import re

from tests.support.metric_pages import RULES, read_yaml
from tests.support.sped_up import sped_up


def test_only_durations_become_shorter() -> None:
    text = "expr: rate(x[5m]) > 300 and y:rate5m offset 1h > 0\nfor: 30s\n"
    fast = "expr: rate(x[3000ms]) > 300 and y:rate5m offset 36000ms > 0\nfor: 300ms\n"
    assert sped_up(text, 100) == fast


def test_all_durations_of_the_rules_are_found() -> None:
    fast = sped_up(RULES.read_text(), 100)
    assert not re.search(r"(\[|for: |offset )\d+[smhd]\b", fast)
    slow = re.sub(r"\b\d+(ms|[smhd])\b", "T", RULES.read_text())
    assert re.sub(r"\b\d+(ms|[smhd])\b", "T", fast) == slow
    assert len(read_yaml(fast)["groups"]) == len(read_yaml(slow)["groups"])
