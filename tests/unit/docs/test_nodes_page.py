"""The page on nodes tells every key, every warning, and the figures of the code."""

import re

import attrs

from musterd.catalog.differences import DIGITS, WHOLE_TABLES
from musterd.store.nodes import (
    FORGET_SECONDS,
    HEARTBEAT_SECONDS,
    KINDS_MAX,
    LIVE_SECONDS,
    YOUNG_SECONDS,
    node_object,
    warnings,
)
from tests.support.pages import bare, codes, page, table
from tests.unit.report.test_why_report import NODE

PAGE = page("nodes.md")
AGREED = PAGE.partition("## What nodes must agree on")[2].partition("It leaves out")[0]


def test_every_key_is_told() -> None:
    (names,) = re.findall(r"has, for each node, `([^`]+)`", PAGE)
    assert names.split() == list(node_object(NODE))
    told = {bare(key) for key, _ in table(PAGE, "key", "meaning")}
    assert told < set(names.split())


def test_every_warning_is_told() -> None:
    node = attrs.evolve(NODE, config_hash="a")
    versions = warnings([node, attrs.evolve(node, version="2")])
    configurations = warnings([node, attrs.evolve(node, config_hash="b")])
    said = [line.partition(":")[0] for line in (*versions, *configurations)]
    assert said == [bare(row[0]) for row in table(PAGE, "warning", "means", "what to do")]


def test_every_table_that_counts_whole_is_told() -> None:
    assert {f"[{name}]" for name in WHOLE_TABLES} <= set(codes(AGREED))


def test_the_figures_are_those_of_the_code() -> None:
    assert f"sends a heartbeat every {HEARTBEAT_SECONDS:g} seconds" in PAGE
    assert f"silent for {LIVE_SECONDS:g} seconds ({YOUNG_SECONDS:g} at" in PAGE
    assert FORGET_SECONDS == 3600
    assert f"the {KINDS_MAX} kinds" in PAGE
    assert f"{DIGITS} digits that stand for" in PAGE
