"""A machine of its own for each test."""

from pathlib import Path

import pytest

from tests.fix_postgres import FreshDatabase
from tests.support.command import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "state")


@pytest.fixture(params=["sqlite", "postgresql"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """One with either store."""
    if request.param == "sqlite":
        return Home(tmp_path / "state")
    fresh_database: FreshDatabase = request.getfixturevalue("fresh_database")
    return Home(tmp_path / "state", fresh_database())
