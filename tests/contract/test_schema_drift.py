"""The files of `schema` say what all migrations make, now and after migrations have been added."""

from collections.abc import Callable, Generator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from musterd.store.postgres.migrating import PACKAGE
from musterd.store.postgres.statements import fill
from musterd.store.sqlfiles import current_schema, found_in
from tests.support.schema_facts import schema_facts

SCHEMA = "musterd"
COLUMN = "progress         real,"
MORE_COLUMN = f"{COLUMN}\n    colour           text default 'red',"
SECOND = "alter table {schema}.job_rows add column colour text default 'red';"


@pytest.fixture
def server(fresh_database: Callable[[], str]) -> Generator[psycopg.Connection[Any]]:
    with psycopg.connect(fresh_database(), autocommit=True) as connection:
        yield connection


def facts_after(connection: psycopg.Connection[Any], *texts: str) -> set[tuple[str, ...]]:
    """Applies texts to an empty schema, and takes it away again."""
    connection.execute(f"create schema {SCHEMA}".encode())
    try:
        for text in texts:
            connection.execute(fill(text, SCHEMA).encode())
        return schema_facts(connection, SCHEMA)
    finally:
        connection.execute(f"drop schema {SCHEMA} cascade".encode())


def drift(connection: psycopg.Connection[Any], package: Traversable) -> set[tuple[str, ...]]:
    """What either the files of the schema or all migrations make, and the other does not."""
    migrated = facts_after(connection, *(migration.sql for migration in found_in(package)))
    return migrated ^ facts_after(connection, current_schema(package))


def test_the_schema_is_what_all_migrations_make(server: psycopg.Connection[Any]) -> None:
    assert facts_after(server, current_schema(files(PACKAGE)))
    assert drift(server, files(PACKAGE)) == set()


def a_release_later(package: Path) -> Path:
    """A package whose first migration is frozen, and which has a second one."""
    (package / "migrations").mkdir()
    (package / "schema").mkdir()
    now = current_schema(files(PACKAGE))
    (package / "migrations" / "0001_schema.sql").write_text(now)
    (package / "migrations" / "0002_colour.sql").write_text(SECOND)
    (package / "schema" / "1_all.sql").write_text(now)
    return package


def test_a_migration_that_the_schema_does_not_follow_is_noticed(
    server: psycopg.Connection[Any], tmp_path: Path
) -> None:
    package = a_release_later(tmp_path)
    assert [migration.number for migration in found_in(package)] == [1, 2]
    assert {name for _sort, name, _definition in drift(server, package)} == {"job_rows.colour"}


def test_a_migration_that_the_schema_follows_is_no_drift(
    server: psycopg.Connection[Any], tmp_path: Path
) -> None:
    package = a_release_later(tmp_path)
    frozen = found_in(package)[0]
    now = package / "schema" / "1_all.sql"
    now.write_text(now.read_text().replace(COLUMN, MORE_COLUMN, 1))
    assert drift(server, package) == set()
    assert found_in(package)[0] == frozen, "the schema moved on, the first migration did not"
