"""A machine of its own for each test."""

from pathlib import Path

import pytest

from tests.support.command import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "state")
