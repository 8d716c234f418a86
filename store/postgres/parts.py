"""What the parts of an engine (its jobs, events, outbox) are given of it: its statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import attrs
import psycopg

from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.numbered import Numbered, send
from musterd.store.postgres.pool import Pool
from musterd.store.postgres.rows import Params, Row
from musterd.store.postgres.time_limit import TimeLimit


class Run(Protocol):
    async def __call__(self, name: str, params: Params) -> list[Row]:
        """One statement by name, as a transaction of its own; gives its rows."""
        ...


class Execute(Protocol):
    async def __call__(self, name: str, params: Params) -> int:
        """As `Run`, for a statement that returns no rows; gives how many it changed."""
        ...


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
