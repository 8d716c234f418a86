"""Applies migrations to a SQLite file: all that are missing, in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from musterd.store.engine import SchemaState
from musterd.store.sqlfiles import Migration, missing, shipped
from musterd.store.sqlite.database import Database

PACKAGE = "musterd.store.sqlite"
LOG = """create table if not exists schema_migrations (
  number integer primary key, name text not null, checksum text not null,
  applied_at integer not null
)"""


def compare(database: Database) -> SchemaState:
    """Raises `StoreMisconfigured` if the schema is newer or made of other migrations."""
    known = shipped(PACKAGE)
    with database.reading("reading the schema's version"):
        applied = _applied(database.connection)
    missing(applied, known, database.where)
    return SchemaState(found=max(applied, default=0), wanted=known[-1].number)


def migrate(database: Database) -> list[str]:
    """Applies what is missing; returns their names."""
    known = shipped(PACKAGE)
    with database.reading("reading the schema's version"):
        applied = _applied(database.connection)
    if not missing(applied, known, database.where):
        return []
    with database.writing("migrating the schema") as now:
        database.connection.execute(LOG)
        todo = missing(_applied(database.connection), known, database.where)
        for migration in todo:
            _apply(database.connection, migration, now)
    return [migration.name for migration in todo]


def statements(script: str) -> Iterator[str]:
    """The statements of a script. `executescript` would commit first: half of it could stay."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""


def _apply(connection: sqlite3.Connection, migration: Migration, now: int) -> None:
    for statement in statements(migration.sql):
        connection.execute(statement)
    connection.execute(
        "insert into schema_migrations (number, name, checksum, applied_at) values (?, ?, ?, ?)",
        (migration.number, migration.name, migration.checksum, now),
    )


def _applied(connection: sqlite3.Connection) -> dict[int, str]:
    found = connection.execute("select 1 from sqlite_master where name = 'schema_migrations'")
    if found.fetchone() is None:
        return {}
    return dict(connection.execute("select number, checksum from schema_migrations").fetchall())
