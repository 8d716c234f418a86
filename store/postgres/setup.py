"""How a connection is made and prepared: limits on the server's side, and whether a pooler stands
in between.
"""

from __future__ import annotations

import re

import attrs
import psycopg
import trio
from psycopg.abc import ConnDict
from psycopg.conninfo import conninfo_to_dict

from musterd.config.secrets import MASK, mask_url
from musterd.store.errors import StoreMisconfigured
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.hosts import Hosts, places

OLDEST_SERVER = 140000
_QUOTED = re.compile('"([^"]*)"')

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


def connection_params(url: str) -> ConnDict:
    """The URL's parameters over defaults that find a dead peer within seconds. Raises
    `StoreMisconfigured`.
    """
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise StoreMisconfigured(
            f"[store] url cannot be read: {without_secrets(str(error).strip(), url)}:"
            " want postgresql://USER@HOST:PORT/DATABASE"
        ) from None
    defaults: ConnDict = {
        "application_name": "musterd",
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 15000,
    }
    if len(places(given)) > 1:  # only one of them takes what we write
        defaults["target_session_attrs"] = "read-write"
    return defaults | given


def without_secrets(message: str, url: str) -> str:
    """What libpq says of a URL, without what it quotes of the URL's secrets."""
    shown = mask_url(url)
    return _QUOTED.sub(lambda found: found[0] if found[1] in shown else f'"{MASK}"', message)


def address(params: ConnDict) -> str:
    """Where this leads, for people, without secrets."""
    database = params.get("dbname") or params.get("user") or "default database"
    return f"postgresql {','.join(places(params))}/{database}"


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
        return
    calls = ", ".join("set_config(%s, %s, false)" for _ in wanted)
    await conn.execute(f"select {calls}", [part for pair in wanted.items() for part in pair])


async def is_pooled(conn: TrioConnection) -> bool:
    """A pooler hands out a process id of its own making; a server its true one."""
    cursor = await conn.execute("select pg_backend_pid()", prepare=False)
    row = await cursor.fetchone()
    return row is None or row[0] != conn.pgconn.backend_pid


def limits(options: StoreOptions) -> dict[str, str]:
    return {
        "statement_timeout": _ms(options.statement_timeout_seconds),
        "lock_timeout": _ms(options.lock_timeout_seconds),
        "idle_in_transaction_session_timeout": _ms(options.idle_transaction_timeout_seconds),
        "default_transaction_isolation": "read committed",
        "timezone": "UTC",
        "jit": "off",
    }


def _ms(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def check_version(conn: TrioConnection, where: str) -> None:
    """Raises `StoreMisconfigured` for a server that is too old."""
    found = conn.info.server_version
    if found < OLDEST_SERVER:
        raise StoreMisconfigured(
            f"{where}: PostgreSQL {found // 10000} is too old: musterd needs 14 or newer"
        )
