"""The statements of a schema as they are sent, and the client's own limit for their answers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

import attrs
import psycopg
import trio
from psycopg.pq import Format

from musterd.store.errors import OutcomeUnknown
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.pool import Pool

Params = Mapping[str, Any]
Row = tuple[Any, ...]
Cursor = psycopg.AsyncCursor[Row]

_NAMED = re.compile(r"%\((\w+)\)s|%%")


class Numbered(NamedTuple):
    """A statement whose parameters are numbered, `names` in the order of their numbers. psycopg
    would look for named ones each time that it sends a statement as long as ours are, which costs
    as much as all the values of a small batch.
    """

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


REPLY_SECONDS = 2.0  # what a reply may take beyond the server's own time limit


class TimeLimit:
    """The client's own limit, for a server that does not answer and for poolers, where the server
    has none of ours. A server that is frozen, or waits for its standby, may yet carry out what it
    was sent: raises `OutcomeUnknown`.
    """

    def __init__(self, seconds: float, what: str) -> None:
        self._scope = trio.CancelScope()
        self._seconds = seconds + REPLY_SECONDS
        self._what = what

    def __enter__(self) -> None:
        self._scope.deadline = trio.current_time() + self._seconds
        self._scope.__enter__()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool | None:
        handled = self._scope.__exit__(kind, error, trace)
        if self._scope.cancelled_caught:
            raise OutcomeUnknown(f"{self._what}: no answer within {self._seconds:g} s", "timeout")
        return handled


class Run(Protocol):
    async def __call__(self, name: str, params: Params) -> list[Row]:
        """One statement by name, as a transaction of its own; gives its rows."""
        ...


class Execute(Protocol):
    async def __call__(self, name: str, params: Params) -> int:
        """As `Run`, for a statement that returns no rows; gives how many it changed."""
        ...


Send = Callable[[TrioConnection, str, Params], Awaitable[Cursor]]


@attrs.frozen
class Statements:
    """The statements of one schema, by name, over the connections that most calls share."""

    sql: Mapping[str, Numbered]
    shared: Pool
    timeout_seconds: float

    async def run(self, name: str, params: Params, pool: Pool | None = None) -> list[Row]:
        with self.limit(name):
            async with (pool or self.shared).use(name) as conn:
                cursor = await self.send(conn, name, params)
                return await cursor.fetchall()

    async def execute(self, name: str, params: Params) -> int:
        with self.limit(name):
            async with self.shared.use(name) as conn:
                return (await self.send(conn, name, params)).rowcount

    async def send(
        self, conn: TrioConnection, name: str, params: Params
    ) -> psycopg.AsyncCursor[Row]:
        return await send(conn, self.sql[name], params)

    def limit(self, what: str) -> TimeLimit:
        return TimeLimit(self.timeout_seconds, what)
