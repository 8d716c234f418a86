"""The health of a PostgreSQL store: what the server and the tables say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import psycopg
import trio

from musterd.store.health import (
    HOLDERS_MAX,
    Connections,
    File,
    Holder,
    Missing,
    PoolMode,
    Replication,
    Server,
    Signs,
    Slot,
    Table,
)
from musterd.store.postgres import setup
from musterd.store.postgres.connection import Gate, Pool, TrioConnection
from musterd.store.postgres.statements import Run

ROUNDS = 20  # others use the same pooler, and may come in between


@attrs.define
class _Memory:
    """Since when each holder of unknown age has been seen: it is at least that old."""

    _since_local: dict[str, float] = attrs.field(factory=dict[str, float])

    def oldest_seconds(self, holders: Sequence[str], now_local: float) -> float:
        """Forgets all others."""
        seen = self._since_local
        self._since_local = {one: seen.get(one, now_local) for one in holders}
        return now_local - min(self._since_local.values(), default=now_local)


class PostgresHealth:
    """See `store.health.Health` for what each method promises."""

    def __init__(self, run: Run, shared: Pool, gate: Gate) -> None:
        self._run = run
        self._shared = shared
        self._gate = gate
        self._memory = _Memory()

    async def signs(self) -> Signs:
        ((seconds, unknown, dead, size),) = await self._run("vital_signs", {})
        remembered = self._memory.oldest_seconds(unknown, trio.current_time())
        return Signs(max(0.0, seconds, remembered), dead, size)

    async def now(self) -> float:
        ((seconds,),) = await self._run("vital_now", {})
        return float(seconds)

    async def pool_mode(self) -> PoolMode:
        async with self._shared.use("looking for a pooler") as first:
            if not await setup.is_pooled(first):
                return "none"
            if not await _takes_transactions(first):
                return "statement"
            second = await self._gate.connect()
            try:
                return await _mode_of_two(first, second)
            finally:
                second.discard()

    async def server(self) -> Server | None:
        return Server(*(await self._run("vital_server", {}))[0])

    async def holders(self) -> Sequence[Holder]:
        return [Holder(*row) for row in await self._run("vital_holders", {"most": HOLDERS_MAX})]

    async def replication(self) -> Replication | None:
        slots = [Slot(*row) for row in await self._run("vital_slots", {})]
        ((wanted, in_sync),) = await self._run("vital_standbys", {})
        return Replication(slots, wanted, in_sync)

    async def tables(self) -> Sequence[Table]:
        found = await self._run("vital_tables", {})
        return [Table(*row)._replace(options=_options(row[4])) for row in found]

    async def missing_rights(self) -> Sequence[Missing]:
        return [Missing(thing, right) for thing, right, _ in await self._run("vital_rights", {})]

    async def connections(self) -> Connections | None:
        return Connections(*(await self._run("vital_connections", {}))[0])

    async def file(self, monotonic: Callable[[], float], seconds: float) -> File | None:
        del monotonic, seconds  # the server's files are the server's affair
        await trio.lowlevel.checkpoint()
        return None

    async def file_beside(self, monotonic: Callable[[], float], seconds: float) -> File | None:
        return await self.file(monotonic, seconds)


def _options(texts: Sequence[str]) -> dict[str, str]:
    """`fillfactor=50` and so on, by name."""
    pairs = (text.partition("=") for text in texts)
    return {name: value for name, _, value in pairs}


async def _mode_of_two(first: TrioConnection, second: TrioConnection) -> PoolMode:
    """In session mode the server of a session is its own. In transaction mode who asks nothing has
    given its server back, and the next one to ask mostly gets the same.
    """
    own: set[int] = set()
    for _ in range(ROUNDS):
        own.add(await _server_of(first))
        if len(own) > 1 or await _server_of(second) in own:
            return "transaction"
    return "session"


async def _server_of(conn: TrioConnection) -> int:
    cursor = await conn.execute("select pg_backend_pid()", prepare=False)
    row = await cursor.fetchone()
    return 0 if row is None else int(row[0])


async def _takes_transactions(conn: TrioConnection) -> bool:
    """A pooler in statement mode refuses to begin one."""
    try:
        await conn.execute("begin", prepare=False)
    except psycopg.Error:
        return False
    await conn.execute("rollback", prepare=False)
    return True
