"""Enqueueing over a connection that is the caller's own, in the transaction that it is in."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from musterd.store.errors import InputRefused
from musterd.store.jobs import NewJob
from musterd.store.postgres.enqueueing import carry_out, carry_out_async, enqueue

WANTED = "a connection of psycopg"
WANTED_ASYNC = "an AsyncConnection of psycopg"


def enqueue_through(connection: object, schema: str, jobs: Sequence[NewJob]) -> list[int]:
    """Makes the jobs in the transaction that this connection is in; gives their ids."""
    if isinstance(connection, psycopg.Connection):
        return carry_out(connection, enqueue(schema, jobs))
    if isinstance(connection, psycopg.AsyncConnection):
        raise _refusal(connection, WANTED, "AsyncClient takes it")
    raise _refusal(connection, WANTED)


async def enqueue_through_async(
    connection: object, schema: str, jobs: Sequence[NewJob]
) -> list[int]:
    """As `enqueue_through`."""
    if isinstance(connection, psycopg.AsyncConnection):
        return await carry_out_async(connection, enqueue(schema, jobs))
    if isinstance(connection, psycopg.Connection):
        raise _refusal(connection, WANTED_ASYNC, "Client takes it")
    raise _refusal(connection, WANTED_ASYNC)


def _refusal(found: object, wanted: str, hint: str = "") -> InputRefused:
    name = f"{type(found).__module__}.{type(found).__qualname__}"
    return InputRefused(f"connection: found {name}, wanted {wanted}{f': {hint}' if hint else ''}")
