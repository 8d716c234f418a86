"""Servers that follow each other, and what a test is told of the work of daemons on them."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.postgres_server import PostgresServer
from tests.support.standby import Standby

CATALOG = """
[kinds.quick]
duration_ms = [1, 20]
[kinds.second]
duration_ms = 1000
[kinds.long]
duration_ms = 4000
"""


@pytest.fixture
def primary() -> Generator[PostgresServer]:
    with PostgresServer() as server:
        server.create_database("jobs")
        yield server


@pytest.fixture
def standby(primary: PostgresServer) -> Generator[Standby]:
    with Standby(primary) as server:
        yield server


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "kinds.toml").write_text(CATALOG)
    sets = {
        "catalog.paths": [str(tmp_path / "kinds.toml")],
        "workers.lease_timeout_seconds": 3,
        "workers.max_count": 8,
        "store.statement_timeout_seconds": 2,
    }
    return tuple(word for key, value in sets.items() for word in ("--set", f"{key}={value}"))
