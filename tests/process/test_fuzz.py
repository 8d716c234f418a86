"""A short run of `make fuzz`, the same inputs each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.described import BIN, try_all, validated
from tests.fuzz.raw import send_all
from tests.support.command import Home
from tests.support.http_client import ask

with_tools = pytest.mark.skipif(
    not (BIN / "schemathesis").exists(), reason="no .fuzz-venv: `make .fuzz-venv/stamp` makes it"
)


@with_tools
def test_the_description_is_openapi_and_true(home: Home, tmp_path: Path) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        assert validated(daemon.address, tmp_path) == ""
        verdict = try_all(daemon.address, tmp_path, examples=5, seed=1)
        assert verdict.is_content, verdict.found
        assert verdict.inputs > 300
        assert not [line for line in daemon.log if "level=error" in line]


def test_no_bytes_bring_it_down(home: Home) -> None:
    with home.daemon() as daemon:
        daemon.wait_until_ready()
        statuses = send_all(daemon.address, count=1000, seed=1)
        assert {status for status in statuses if status.startswith("5")} <= {"501"}
        assert ask(daemon.address, "/readyz").status == 200
        assert not [line for line in daemon.log if "level=error" in line]
