"""The page on measuring tells each option, each exit code and each key of the object."""

from __future__ import annotations

from typing import Any

import click

from musterd.console.bench import verb
from musterd.console.bench.measurement import BATCH, Findings, Machine, Plan, report_object
from musterd.console.command import musterd
from musterd.console.output import Exit
from musterd.store.scratch import PREFIX
from musterd.store.words import count_text
from tests.support.pages import bare, codes, page, table

PAGE = page("bench.md")


def test_each_option_has_its_row_and_default() -> None:
    options = [one for one in musterd.commands["bench"].params if isinstance(one, click.Option)]
    told = {bare(name): bare(default) for name, default, _ in table(PAGE, "option", "default")}
    assert list(told) == [one.opts[0] for one in options]
    assert told.pop("--workers") == "workers.max_count"
    rest = [one for one in options if one.name != "workers"]
    assert list(told.values()) == [str(one.default) for one in rest]


def test_its_bounds() -> None:
    rows = {bare(row[0]): row[2] for row in table(PAGE, "option", "default")}
    for name, most in (
        ("--jobs", verb.JOBS_MAX),
        ("--workers", verb.WORKERS_MAX),
        ("--pick-ups", verb.PICK_UPS_MAX),
    ):
        assert rows[name].endswith(f"1 to {count_text(most)}")
    assert (verb.WITHIN_SECONDS_MIN, verb.WITHIN_SECONDS_MAX) == (1, 3600)
    assert rows["--within"].endswith("1s to 1h")
    assert f"{count_text(BATCH)} jobs per call" in PAGE
    assert f"`{PREFIX}`" in PAGE


def test_its_exit_codes() -> None:
    told = [int(bare(code)) for code, _ in table(PAGE, "exit", "means")]
    assert told == [code for code in Exit if code is not Exit.WRONG_STATE]


def test_each_key_of_the_object_is_named() -> None:
    found = Findings(pick_ups_seconds=[1.0])
    told: dict[str, Any] = report_object(Plan(1, 1, 1, 1), found, Machine("", "", 1))
    named = set(codes(PAGE.partition("## For programs")[2]))
    assert {*told, *told["pick_up_seconds"], *told["wanted"]} <= named
