"""The page on `why` tells every reason, every key, and the figures of the code."""

import re

from musterd.manager.http.why_schema import WHY_SCHEMA
from musterd.store.nodes import FORGET_SECONDS, HEARTBEAT_SECONDS, KINDS_MAX, LIVE_SECONDS
from musterd.store.nodes import node_object as object_of
from musterd.store.reasons import Code
from musterd.store.standing import LINE_BOUND
from tests.support.pages import bare, codes, page, table
from tests.unit.report.test_why_report import NODE

PAGE = page("why.md")


def test_every_reason_is_told_in_order() -> None:
    told = [bare(code) for code, *_ in table(PAGE, "code", "means", "what to do")]
    assert told == [code.value for code in Code]


def test_every_key_is_told() -> None:
    told = [key for cell, _ in table(PAGE, "key", "is") for key in codes(cell)]
    assert told == WHY_SCHEMA["required"]


def test_every_key_of_a_node_is_told() -> None:
    (names,) = re.findall(r"has, for each node, `([^`]+)`", PAGE)
    assert names.split() == list(object_of(NODE))


def test_the_figures_are_those_of_the_code() -> None:
    assert f"says every {HEARTBEAT_SECONDS:g} seconds" in PAGE
    assert f"silent for {LIVE_SECONDS:g} seconds" in PAGE
    assert FORGET_SECONDS == 3600
    assert f"most {KINDS_MAX} kinds" in PAGE
    assert f"The first {LINE_BOUND:,} jobs are looked at" in PAGE
