"""Tools that a test needs and a machine may lack: the test is skipped and says what to install.

Where `MUSTERD_TEST_COMPLETE=1` is set, as in `.ci/run`, it fails.
"""

from __future__ import annotations

import os
import shutil

import pytest


class ToolMissing(Exception):
    """The text names the tool and says how to get it."""


def program(name: str, package: str = "") -> str:
    """The path of a program. Raises `ToolMissing`."""
    found = shutil.which(name)
    if found is None:
        raise ToolMissing(f"{name} is not on PATH (Debian: apt-get install {package or name})")
    return found


def as_skipped(item: pytest.Item, report: pytest.TestReport, missing: ToolMissing) -> None:
    """Turns the report of a test that lacks a tool into that of one that is skipped."""
    if os.environ.get("MUSTERD_TEST_COMPLETE") == "1":
        return
    report.outcome = "skipped"
    # One place for all, so that the summary has a line for each tool and not for each test.
    report.longrepr = (str(item.config.rootpath / "tests"), 0, f"Skipped: {missing}")
