"""Enqueueing over a connection that is the caller's own, in the transaction that it is in.

psycopg's is spoken to as the client's own are. Of others nothing is known but how to send a
statement: they get one parameter, a text, which all drivers send alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from musterd.store.errors import InputRefused
from musterd.store.jobs import NewJob
from musterd.store.postgres.enqueueing import carry_out, carry_out_async, enqueue, jobs_text

THROUGH_TEXT = 'select "{schema}".enqueue_many(cast(cast({jobs} as text) as jsonb))'
WANTED = "psycopg's Connection, SQLAlchemy's Connection or Session, or Django's connection"
WANTED_ASYNC = "psycopg's AsyncConnection, or SQLAlchemy's AsyncConnection or AsyncSession"
# By the class that anybody's class descends from: none of these libraries is imported here.
PSYCOPG, PSYCOPG_ASYNC = "psycopg.Connection", "psycopg.AsyncConnection"
SQLALCHEMY = frozenset({"sqlalchemy.engine.base.Connection"})
SQLALCHEMY_SESSIONS = frozenset(
    {"sqlalchemy.orm.session.Session", "sqlalchemy.orm.scoping.scoped_session"}
)
SQLALCHEMY_ASYNC = frozenset({"sqlalchemy.ext.asyncio.engine.AsyncConnection"})
SQLALCHEMY_ASYNC_SESSIONS = frozenset(
    {
        "sqlalchemy.ext.asyncio.session.AsyncSession",
        "sqlalchemy.ext.asyncio.scoping.async_scoped_session",
    }
)
DJANGO = frozenset({"django.db.backends.base.base.BaseDatabaseWrapper"})
DJANGO_PROXIES = frozenset({"django.utils.connection.ConnectionProxy"})


def enqueue_through(connection: Any, schema: str, jobs: Sequence[NewJob]) -> list[int]:
    """Makes the jobs in the transaction that this connection is in; gives their ids. What goes
    wrong there is raised as the connection raises it.
    """
    names = _names(connection)
    if PSYCOPG in names:
        return carry_out(connection, enqueue(schema, jobs))
    if names & SQLALCHEMY_SESSIONS:
        connection, names = connection.connection(), SQLALCHEMY
    if names & SQLALCHEMY:
        _refuse_other_databases(connection.dialect.name)
        found = connection.execute(_for_sqlalchemy(schema), {"jobs": jobs_text(jobs)})
        return [row[0] for row in found]
    if names & (DJANGO | DJANGO_PROXIES):
        _refuse_other_databases(connection.vendor)
        with connection.cursor() as cursor:
            cursor.execute(THROUGH_TEXT.format(schema=schema, jobs="%s"), [jobs_text(jobs)])
            return [row[0] for row in cursor.fetchall()]
    if names & {*SQLALCHEMY_ASYNC, *SQLALCHEMY_ASYNC_SESSIONS, PSYCOPG_ASYNC}:
        raise _refusal(connection, WANTED, "AsyncClient takes it")
    raise _refusal(connection, WANTED)


async def enqueue_through_async(connection: Any, schema: str, jobs: Sequence[NewJob]) -> list[int]:
    """As `enqueue_through`."""
    names = _names(connection)
    if PSYCOPG_ASYNC in names:
        return await carry_out_async(connection, enqueue(schema, jobs))
    if names & SQLALCHEMY_ASYNC_SESSIONS:
        connection, names = await connection.connection(), SQLALCHEMY_ASYNC
    if names & SQLALCHEMY_ASYNC:
        _refuse_other_databases(connection.dialect.name)
        found = await connection.execute(_for_sqlalchemy(schema), {"jobs": jobs_text(jobs)})
        return [row[0] for row in found]
    if names & {*SQLALCHEMY, *SQLALCHEMY_SESSIONS, *DJANGO, *DJANGO_PROXIES, PSYCOPG}:
        raise _refusal(connection, WANTED_ASYNC, "Client takes it")
    raise _refusal(connection, WANTED_ASYNC)


def _names(connection: object) -> frozenset[str]:
    return frozenset(f"{one.__module__}.{one.__qualname__}" for one in type(connection).__mro__)


def _for_sqlalchemy(schema: str) -> Any:
    from sqlalchemy import text  # noqa: PLC0415 - it is there: it has made the connection

    return text(THROUGH_TEXT.format(schema=schema, jobs=":jobs"))


def _refuse_other_databases(found: str) -> None:
    if found != "postgresql":
        raise InputRefused(
            f"connection: found one to {found}, wanted one to the PostgreSQL that keeps the jobs"
        )


def _refusal(found: object, wanted: str, hint: str = "") -> InputRefused:
    name = f"{type(found).__module__}.{type(found).__qualname__}"
    return InputRefused(f"connection: found {name}, wanted {wanted}{f': {hint}' if hint else ''}")
