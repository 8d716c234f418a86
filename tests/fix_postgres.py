"""Fixtures: one PostgreSQL for the whole run, a database of its own for each test that asks."""

import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import pytest

from tests.support.postgres_server import PostgresServer

# A statement runs to its end after its client has been killed: the server looks at the socket then.
_GRACE_SECONDS = 20.0


class FreshDatabase(Protocol):
    """Makes an empty database, or a copy of `template`, and answers its URL."""

    def __call__(self, template: str | None = None) -> str: ...


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The run's own server. Raises `PostgresMissing`."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def fresh_database(postgres: PostgresServer) -> Iterator[FreshDatabase]:
    """Databases for one test, dropped after it; a connection that it left open is its failure."""
    names: list[str] = []

    def make(template: str | None = None) -> str:
        names.append(f"test_{secrets.token_hex(6)}")
        return postgres.create_database(names[-1], template)

    yield make
    postgres.start()
    left_open = [line for name in names for line in _left_open(postgres, name)]
    for name in names:
        postgres.drop_database(name)
    assert not left_open, "connections left open:\n" + "\n".join(left_open)


def _left_open(postgres: PostgresServer, name: str) -> Sequence[str]:
    """The sessions that are there after a moment's grace: a server sees a close a bit later."""
    deadline = time.monotonic() + _GRACE_SECONDS
    while sessions := postgres.sessions(name):
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    return sessions
