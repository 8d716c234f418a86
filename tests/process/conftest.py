"""A machine of its own for each test."""

from pathlib import Path

import pytest

from tests.fix_postgres import FreshDatabase
from tests.support.command import Home
from tests.support.site import Site


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "state")


@pytest.fixture
def server_home(tmp_path: Path, fresh_database: FreshDatabase) -> Home:
    """One with a store on PostgreSQL."""
    return Home(tmp_path / "state", fresh_database())


@pytest.fixture(params=["sqlite", "postgresql"])
def machine(request: pytest.FixtureRequest) -> Home:
    """One with either store."""
    found: Home = request.getfixturevalue("home" if request.param == "sqlite" else "server_home")
    return found


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
