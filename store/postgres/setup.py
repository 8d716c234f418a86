"""How a connection is made and prepared: which of the servers that a URL names is asked, limits on
the server's side, and whether a pooler stands in between.

Of several servers one is the primary, and which one changes; the others refuse what they are asked
for (`target_session_attrs`) or do not answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import attrs
import psycopg
import trio
from psycopg.abc import ConnDict
from psycopg.conninfo import conninfo_attempts

from musterd.store.errors import StoreMisconfigured
from musterd.store.postgres.addresses import place, places
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.errors import NoHostServes
from musterd.store.postgres.statements import ms
from musterd.store.threads import in_thread

HEAD_START_SECONDS = 0.5  # what a silent host has before the next one is asked, too

Reach = Callable[[ConnDict, float], Awaitable[TrioConnection]]
LookUp = Callable[[ConnDict], Awaitable[list[ConnDict]]]


async def look_up(params: ConnDict) -> list[ConnDict]:
    """One attempt for each address of each host, by the machine's resolver."""
    return await in_thread(partial(conninfo_attempts, params), abandon_on_cancel=True)


@attrs.define(eq=False)
class Hosts:
    """Those of one URL, in its order, but the one that served last comes first."""

    params: ConnDict
    timeout_seconds: float  # for each of them
    _reach: Reach = TrioConnection.reach
    _look_up: LookUp = look_up
    _served: str | None = attrs.field(default=None, init=False)

    async def connect(self) -> TrioConnection:
        """A connection to the first that serves. A host that keeps silent holds up the others for
        a moment only. Raises psycopg's errors; `NoHostServes` where several have failed.
        """
        asking = _Asking(self._reach, self.timeout_seconds)
        conn = await asking.ask_all(self._in_order(await self._attempts()))
        self._served = asking.served
        return conn

    async def _attempts(self) -> list[ConnDict]:
        """The names are looked up anew each time: they may have moved."""
        try:
            with trio.fail_after(self.timeout_seconds):
                return await self._look_up(self.params)
        except trio.TooSlowError:
            names = ", ".join(places(self.params))
            said = f"the names of {names} were not found within {self.timeout_seconds:g} s"
            raise psycopg.OperationalError(said) from None

    def _in_order(self, attempts: Sequence[ConnDict]) -> list[ConnDict]:
        return sorted(attempts, key=lambda attempt: place(attempt) != self._served)


@attrs.define(eq=False)
class _Asking:
    """One round over all hosts."""

    reach: Reach
    timeout_seconds: float
    served: str | None = None
    _conn: TrioConnection | None = None
    _failed: list[psycopg.Error] = attrs.field(factory=list[psycopg.Error])

    async def ask_all(self, attempts: Sequence[ConnDict]) -> TrioConnection:
        try:
            await self._ask_in_turn(attempts)
        except BaseException:
            if self._conn is not None:
                self._conn.discard()
            raise
        if self._conn is not None:
            return self._conn
        if len(self._failed) == 1:
            raise self._failed[0]
        raise NoHostServes(self._failed)

    async def _ask_in_turn(self, attempts: Sequence[ConnDict]) -> None:
        async with trio.open_nursery() as nursery:
            for attempt in attempts:
                answered = trio.Event()
                nursery.start_soon(self._ask, attempt, answered, nursery.cancel_scope)
                with trio.move_on_after(HEAD_START_SECONDS):
                    await answered.wait()

    async def _ask(self, attempt: ConnDict, answered: trio.Event, others: trio.CancelScope) -> None:
        try:
            conn = await self.reach(attempt, self.timeout_seconds)
        except (psycopg.Error, OSError) as error:
            if not isinstance(error, psycopg.Error):
                error = psycopg.OperationalError(str(error))
            self._failed.append(error)
            answered.set()
            return
        if self._conn is not None:  # two at the same moment
            conn.discard()
            return
        self._conn, self.served = conn, place(attempt)
        others.cancel()


OLDEST_SERVER = 140000

# The hot statements are written for nested loops over the claim index and the primary key. These
# keep a planner that has stale statistics (a queue's are never fresh) from reading the whole table,
# from gathering all that is due before it takes the first, and from planning anew each time.
PLANNER = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
}


@attrs.frozen
class StoreOptions:
    """`[store]`'s limits, as the engine needs them."""

    pool_size: int
    connect_timeout_seconds: float
    statement_timeout_seconds: float
    lock_timeout_seconds: float
    idle_transaction_timeout_seconds: float
    reconnect_base_seconds: float
    reconnect_max_seconds: float
    listen_url: str


async def dial(hosts: Hosts, options: StoreOptions, settings: dict[str, str]) -> TrioConnection:
    """A connection of our own with limits set; through a pooler one without, whose server sessions
    are not ours to set.
    """
    conn = await hosts.connect()
    seconds = options.connect_timeout_seconds
    try:
        with trio.fail_after(seconds):
            await _prepare(conn, limits(options) | settings)
    except trio.TooSlowError:
        conn.discard()
        said = f"connected, then no answer within {seconds:g} s"
        raise psycopg.errors.ConnectionTimeout(said) from None
    except BaseException:
        conn.discard()
        raise
    return conn


async def _prepare(conn: TrioConnection, wanted: dict[str, str]) -> None:
    if await is_pooled(conn):
        conn.prepare_threshold = None
    await conn.set_all(wanted)


async def is_pooled(conn: TrioConnection) -> bool:
    """A pooler hands out a process id of its own making; a server its true one."""
    cursor = await conn.execute("select pg_backend_pid()", prepare=False)
    row = await cursor.fetchone()
    return row is None or row[0] != conn.pgconn.backend_pid


def limits(options: StoreOptions) -> dict[str, str]:
    return {
        "statement_timeout": ms(options.statement_timeout_seconds),
        "lock_timeout": ms(options.lock_timeout_seconds),
        "idle_in_transaction_session_timeout": ms(options.idle_transaction_timeout_seconds),
        "default_transaction_isolation": "read committed",
        "timezone": "UTC",
        "jit": "off",
    }


def check_version(conn: TrioConnection, where: str) -> None:
    """Raises `StoreMisconfigured` for a server that is too old."""
    found = conn.info.server_version
    if found < OLDEST_SERVER:
        raise StoreMisconfigured(
            f"{where}: PostgreSQL {found // 10000} is too old: musterd needs 14 or newer"
        )
