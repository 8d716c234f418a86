"""A machine of its own for each test."""

from pathlib import Path

import pytest

from tests.fix_postgres import FreshDatabase
from tests.support.command import Home
from tests.support.site import Site


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


@pytest.fixture
def site(machine: Home, tmp_path: Path) -> Site:
    found = Site(machine, tmp_path / "musterd.toml")
    found.write()
    return found


@pytest.fixture
def small(home: Home, tmp_path: Path) -> Site:
    """On SQLite: where the store makes no difference."""
    found = Site(home, tmp_path / "musterd.toml")
    found.write()
    return found
