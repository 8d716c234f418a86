"""What histories stand on: a server, a database for some of them, and a line to it for each who
takes part. Lines and what the server has prepared for them are kept from history to history.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any

import attrs
import psycopg
import trio

from musterd.store.postgres.engine import Hub, PostgresEngine
from tests.contract.rigs import OPTIONS as RIG_OPTIONS
from tests.contract.rigs import SCHEMA
from tests.histories.plan import SEATS
from tests.support.empty_schema import emptying
from tests.support.postgres_server import PostgresServer
from tests.support.wire_proxy import WireProxy

TEMPLATE = "histories"
REST_SECONDS = 10.0
LOOK_SECONDS = 0.002
# Of statements that are still under way on this database.
BUSY = """
    select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle'
"""
END_SESSIONS = """
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
        and backend_type = 'client backend'
"""
MISPLACED = f"select job_id, fault from {SCHEMA}.check() order by job_id limit 5"
OPTIONS = attrs.evolve(
    RIG_OPTIONS,
    pool_size=3,
    statement_timeout_seconds=2,
    lock_timeout_seconds=0.5,
    idle_transaction_timeout_seconds=2,
    reconnect_base_seconds=0.005,
    reconnect_max_seconds=0.05,
)


@attrs.define(eq=False)
class Seat:
    """A line, and the connections over it. Without a proxy: the line that nothing befalls."""

    url: str
    hub: Hub
    proxy: WireProxy | None = None

    def engine(self) -> PostgresEngine:
        """A process's own, which knows nothing of those before it."""
        return PostgresEngine(self.url, SCHEMA, OPTIONS, random.Random(1), self.hub)


@attrs.define(eq=False)
class Ground:
    """`calm`: of who comes after the troubles. `behind`: the harness's own way in."""

    server: PostgresServer
    url: str
    seats: list[Seat]
    calm: Seat
    empty: bytes = b""
    _session: psycopg.Connection[Any] | None = None

    @property
    def behind(self) -> psycopg.Connection[Any]:
        """Another one, once the server has crashed."""
        if self._session is None or self._session.broken:
            self._session = psycopg.connect(self.url, autocommit=True)
            self._session.execute(f"set search_path = {SCHEMA}".encode())
        return self._session

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Once more if the server has crashed since it was asked last."""
        try:
            return self.behind.execute(sql.encode()).fetchall()
        except psycopg.OperationalError:
            return self.behind.execute(sql.encode()).fetchall()

    def begin_anew(self) -> None:
        """As it was migrated."""
        self.empty = self.empty or emptying(self.behind, SCHEMA)
        self.behind.execute(self.empty)

    def moment(self) -> str:
        ((text,),) = self.ask("select to_json(clock_timestamp()) #>> '{}'")
        return str(text)

    def end_sessions(self) -> None:
        self.ask(END_SESSIONS)

    async def come_to_rest(self) -> bool:
        """Until what was sent before is carried out, or given up by the server."""
        deadline = trio.current_time() + REST_SECONDS
        while self.ask(BUSY) != [(0,)]:
            if trio.current_time() > deadline:
                return False
            await trio.sleep(LOOK_SECONDS)
        return True

    def close(self) -> None:
        if self._session is not None:
            self._session.close()


@contextmanager
def prepared(server: PostgresServer) -> Generator[PostgresServer]:
    """With a template for databases, as the product migrates it."""
    url = server.create_database(TEMPLATE)

    async def migrate() -> None:
        engine = PostgresEngine(url, SCHEMA, OPTIONS, random.Random(1))
        await engine.open()
        await engine.migrate()
        await engine.close()

    trio.run(migrate)
    try:
        yield server
    finally:
        server.drop_database(TEMPLATE)


@asynccontextmanager
async def grounded(server: PostgresServer) -> AsyncGenerator[Ground]:
    """A database of its own."""
    name = f"histories_{secrets.token_hex(4)}"
    url = server.create_database(name, TEMPLATE)
    with ExitStack() as stack:
        stack.callback(server.drop_database, name)
        proxies = [stack.enter_context(WireProxy(url)) for _ in range(SEATS)]
        seats = [Seat(one.url, Hub(one.url, OPTIONS, random.Random(1)), one) for one in proxies]
        ground = Ground(server, url, seats, Seat(url, Hub(url, OPTIONS, random.Random(1))))
        stack.callback(ground.close)
        hubs = [one.hub for one in (*seats, ground.calm)]
        for hub in hubs:
            hub.join()  # it stays when engines leave
        yield ground
        for hub in hubs:
            await hub.leave()
