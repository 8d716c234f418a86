"""Makes the schema: applies all missing migrations in one transaction, one caller at a time. Also
makes the roles that other programs may be granted.
"""

from __future__ import annotations

from importlib.resources import files

import psycopg

from musterd.store.engine import SchemaState
from musterd.store.postgres import addresses
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.errors import sort_connect_error, sort_error
from musterd.store.postgres.statements import fill
from musterd.store.sqlfiles import Migration, missing, shipped

PACKAGE = "musterd.store.postgres"
MADE_MEANWHILE = ("23505", "42P06", "42P07")  # the name is taken, since a moment ago


async def compare(conn: TrioConnection, schema: str, where: str) -> SchemaState:
    """Raises `StoreMisconfigured` where the schema is newer than this program or made of other
    migrations.
    """
    known = shipped(PACKAGE)
    applied = await _applied(conn, schema)
    missing(applied, known, where)
    return SchemaState(found=max(applied, default=0), wanted=known[-1].number)


async def migrate(conn: TrioConnection, schema: str, where: str) -> list[str]:
    """Applies what is missing; returns their names. `conn` is in autocommit; this opens a
    transaction of its own.
    """
    known = shipped(PACKAGE)
    if not missing(await _applied(conn, schema), known, where):
        return []
    while not await _has_begun(conn, schema):
        await conn.execute("rollback")
    todo = missing(await _applied(conn, schema), known, where)
    for migration in todo:
        await _apply(conn, schema, migration)
    await conn.execute("commit")
    return [migration.name for migration in todo]


async def _has_begun(conn: TrioConnection, schema: str) -> bool:
    """Opens a transaction that no other migrator is in: who makes a name is waited for by who would
    make it too, and who locks the log by all others. False = the names were made meanwhile.

    Both are the owner's own. An advisory lock could be kept by any role that may connect.
    """
    await conn.execute("begin")
    try:
        await _create_log(conn, schema)
    except psycopg.Error as error:
        if error.sqlstate in MADE_MEANWHILE:
            return False
        raise
    await conn.execute(_text("lock table {schema}.schema_migrations in exclusive mode", schema))
    return True


async def _create_log(conn: TrioConnection, schema: str) -> None:
    # Looked up first: `create schema if not exists` wants the right to create even where the schema
    # exists.
    found = await (
        await conn.execute("select 1 from pg_namespace where nspname = %s", (schema,))
    ).fetchone()
    if found is None:
        await conn.execute(_text("create schema {schema}", schema))
    await conn.execute(
        _text(
            "create table if not exists {schema}.schema_migrations (number integer primary key,"
            " name text not null, checksum text not null,"
            " applied_at timestamptz not null default clock_timestamp())",
            schema,
        )
    )


async def _apply(conn: TrioConnection, schema: str, migration: Migration) -> None:
    await conn.execute(_text(migration.sql, schema), prepare=False)
    await conn.execute(
        _text(
            "insert into {schema}.schema_migrations (number, name, checksum) values (%s, %s, %s)",
            schema,
        ),
        (migration.number, migration.name, migration.checksum),
    )


async def _applied(conn: TrioConnection, schema: str) -> dict[int, str]:
    exists = await (
        await conn.execute("select to_regclass(%s) is not null", (f'"{schema}".schema_migrations',))
    ).fetchone()
    if exists is None or not exists[0]:
        return {}
    cursor = await conn.execute(
        _text("select number, checksum from {schema}.schema_migrations", schema)
    )
    return dict(await cursor.fetchall())


def _text(sql: str, schema: str) -> bytes:
    return fill(sql, schema).encode()


def role_names(schema: str) -> dict[str, str]:
    """By what they may do: `enqueue` calls functions, `read` sees jobs without their payload,
    `daemon` runs a node.
    """
    return {duty: f"{schema}_{duty}" for duty in ("enqueue", "read", "daemon")}


def roles_sql(schema: str) -> str:
    """What makes the roles and gives them their rights; safe to run again, as after a migration."""
    text = (files(PACKAGE) / "roles.sql").read_text("utf-8")
    for duty, name in role_names(schema).items():
        text = text.replace(f"{{{duty}}}", f'"{name}"')
    return fill(text, schema)


def apply_roles(url: str, schema: str) -> None:
    """Makes the roles, all or none. Raises the store's own errors."""
    params = addresses.connection_params(url)
    where = addresses.address(params)
    try:
        connection = psycopg.connect(**params)  # type: ignore[arg-type]  # libpq's own names
    except psycopg.Error as error:
        raise sort_connect_error(error, where) from None  # its text may show the password
    try:
        with connection:
            connection.execute(roles_sql(schema).encode())
    except psycopg.Error as error:
        raise sort_error(error, "making roles", where, sent=True) from error
