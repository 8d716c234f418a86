"""Statements whose parameters are numbered. psycopg would look for named ones each time that it
sends a statement as long as ours are, which costs as much as all the values of a small batch.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import psycopg
from psycopg.pq import Format

from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.rows import Params, Row

_NAMED = re.compile(r"%\((\w+)\)s|%%")

Cursor = psycopg.AsyncCursor[Row]


class Numbered(NamedTuple):
    """`names`: of its parameters, in the order of their numbers."""

    text: bytes
    names: tuple[str, ...]


def numbered(sql: str) -> Numbered:
    names = list(dict.fromkeys(name for name in _NAMED.findall(sql) if name))

    def number(found: re.Match[str]) -> str:
        return f"${names.index(found[1]) + 1}" if found[1] else "%"

    return Numbered(_NAMED.sub(number, sql).encode(), tuple(names))


async def send(conn: TrioConnection, statement: Numbered, params: Params) -> Cursor:
    """The rows come as binary."""
    cursor = psycopg.AsyncRawCursor(conn)
    cursor.format = Format.BINARY
    return await cursor.execute(statement.text, [params[name] for name in statement.names])
