"""The roles that a database may have for those who use musterd's schema."""

from __future__ import annotations

from importlib.resources import files

import psycopg

from musterd.store.postgres import setup
from musterd.store.postgres.migrating import PACKAGE, fill
from musterd.store.postgres.troubles import sort_connect_error, sort_error


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
    params = setup.connection_params(url)
    where = setup.address(params)
    try:
        connection = psycopg.connect(**params)  # type: ignore[arg-type]  # libpq's own names
    except psycopg.Error as error:
        raise sort_connect_error(error, where) from None  # its text may show the password
    try:
        with connection:
            connection.execute(roles_sql(schema).encode())
    except psycopg.Error as error:
        raise sort_error(error, "making roles", where, sent=True) from error
