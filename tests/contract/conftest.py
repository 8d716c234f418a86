"""The stores that the suite runs on. A new engine joins here."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.rigs import PostgresRig, Rig, SqliteRig, opened
from tests.fix_postgres import FreshDatabase

SHARED = ["sqlite", "postgresql"]  # more than one engine may open them
ALL = ["sqlite", "sqlite-memory", "postgresql"]


def _make(name: str, request: pytest.FixtureRequest) -> Rig:
    if name == "postgresql":
        return PostgresRig(request.getfixturevalue("fresh_database")())
    if name == "sqlite-memory":
        return SqliteRig(":memory:")
    folder: Path = request.getfixturevalue("tmp_path")
    return SqliteRig(str(folder / "store.db"))


@pytest.fixture(params=ALL)
def unopened(request: pytest.FixtureRequest) -> Rig:
    """An empty store that nobody has opened."""
    return _make(request.param, request)


@pytest.fixture(params=SHARED)
def unopened_shared(request: pytest.FixtureRequest) -> Rig:
    return _make(request.param, request)


@pytest.fixture
def unopened_sqlite(tmp_path: Path) -> Rig:
    return SqliteRig(str(tmp_path / "store.db"))


@pytest.fixture
async def rig(unopened: Rig) -> AsyncGenerator[Rig, Any]:
    async with opened(unopened) as ready:
        yield ready


@pytest.fixture
async def shared(unopened_shared: Rig) -> AsyncGenerator[Rig, Any]:
    """A store that a test opens a second time."""
    async with opened(unopened_shared) as ready:
        yield ready


@pytest.fixture
async def postgres_rig(fresh_database: FreshDatabase) -> AsyncGenerator[PostgresRig, Any]:
    """PostgreSQL alone, for what is seen on its row locks."""
    rig = PostgresRig(fresh_database())
    async with opened(rig):
        yield rig
