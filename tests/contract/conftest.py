"""The stores that the suite runs on. A new engine joins here."""

import os
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.rigs import PostgresRig, Rig, SqliteRig, opened
from tests.support.pgbouncer import PgBouncer, running
from tests.support.postgres_server import PostgresServer

SHARED = ["sqlite", "postgresql"]  # more than one engine may open them
ALL = ["sqlite", "sqlite-memory", "postgresql"]


def _make(name: str, request: pytest.FixtureRequest) -> Rig:
    if name == "postgresql":
        return _postgres(request)
    if name == "sqlite-memory":
        return SqliteRig(":memory:")
    folder: Path = request.getfixturevalue("tmp_path")
    return SqliteRig(str(folder / "store.db"))


def _postgres(request: pytest.FixtureRequest) -> PostgresRig:
    """Through a pooler in transaction mode, if MUSTERD_TEST_POOLED says so."""
    url: str = request.getfixturevalue("fresh_database")()
    if not os.environ.get("MUSTERD_TEST_POOLED"):
        return PostgresRig(url)
    pooler: PgBouncer = request.getfixturevalue("pooler")
    return PostgresRig(url, pooler.url(url.rpartition("/")[2]))


@pytest.fixture
def pooler(postgres: PostgresServer) -> Generator[PgBouncer]:
    with running(postgres) as bouncer:
        yield bouncer


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
async def postgres_rig(request: pytest.FixtureRequest) -> AsyncGenerator[PostgresRig, Any]:
    """PostgreSQL alone, for what is seen on its row locks."""
    rig = _postgres(request)
    async with opened(rig):
        yield rig
