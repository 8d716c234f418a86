"""The Engine on PostgreSQL: one schema, reached through the connections of a hub.

A hub has the connections to one database, for one engine or for those of all its tenants. Claims
and renewals have connections that nothing else can hold up; everything else shares a small pool.
However many tenants there are, the number of connections is bounded.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import trio
from psycopg.abc import ConnDict

from musterd.store.connections import ConnectionUse
from musterd.store.engine import SchemaState
from musterd.store.idle_tenant_scan import TenantActivity
from musterd.store.leases import EXCHANGES_AT_ONCE
from musterd.store.postgres import addresses, setup
from musterd.store.postgres.claiming import FROM_THE_FIRST, Claimer, Marks, start_params
from musterd.store.postgres.connection import Gate, Pool, TrioConnection
from musterd.store.postgres.control import PostgresControl
from musterd.store.postgres.duties import PostgresDuties, PostgresSchedules
from musterd.store.postgres.events import PostgresAudit, PostgresEvents
from musterd.store.postgres.exchanges import Exchanger
from musterd.store.postgres.health import PostgresHealth
from musterd.store.postgres.hints import Hints
from musterd.store.postgres.history import PostgresHistory
from musterd.store.postgres.jobs import PostgresJobs
from musterd.store.postgres.leases import PostgresLeases
from musterd.store.postgres.migrating import compare, migrate
from musterd.store.postgres.nodes import PostgresNodes
from musterd.store.postgres.outbox import PostgresOutbox
from musterd.store.postgres.overview import PostgresOverview
from musterd.store.postgres.phases import PostgresPhases
from musterd.store.postgres.queue import PostgresIdleChecks, PostgresQueue
from musterd.store.postgres.retention import PostgresRetention
from musterd.store.postgres.scaling_journal import PostgresScalingJournal
from musterd.store.postgres.setup import Hosts
from musterd.store.postgres.statements import (
    LOCK_SECONDS,
    Numbered,
    Statements,
    fill,
    ms,
    numbered,
    send,
    statements_of,
)
from musterd.store.postgres.time_limit import TimeLimit
from musterd.store.queue import IdleCheck
from musterd.store.sqlfiles import load_statements
from musterd.store.waiting import Backoff

AT_ONCE = 200  # tenants in one statement
STATEMENTS_MAX = 50  # kept as text
FOR_NOBODY = {  # no node asks for its share
    "bound": 1, "me": None, "pauses": 0, "most": None, **start_params(FROM_THE_FIRST),
}  # fmt: skip
LEASES_MAX = 2  # connections for renewals, however many tenants share them


class Hub:
    """Made for one URL. Each engine that uses it joins, and leaves when it is closed; the last one
    closes the connections.
    """

    def __init__(self, url: str, options: setup.StoreOptions, rng: random.Random) -> None:
        self.params = addresses.connection_params(url)
        self.where = addresses.address(self.params)
        self.options = options
        self._rng = rng
        listening = (
            addresses.connection_params(options.listen_url) if options.listen_url else self.params
        )
        self.hints = Hints(self._gate(listening))
        self.gate = gate = self._gate(self.params, self.hints.doubt)
        self.exchange = Pool(gate, EXCHANGES_AT_ONCE, {"lock_timeout": ms(LOCK_SECONDS)})
        self.leases = Pool(gate, 1)
        self.shared = Pool(gate, options.pool_size)
        # Many tenants that are migrated at once must leave room for those that work already.
        self.migrating = trio.CapacityLimiter(max(1, options.pool_size // 2))
        self._users = 0

    @property
    def is_used(self) -> bool:
        return self._users > 0

    @property
    def use_now(self) -> ConnectionUse:
        """Of the pools; the connection that listens is apart."""
        first, *others = (self.exchange, self.leases, self.shared)
        use = first.use_now
        for pool in others:
            use = use.plus(pool.use_now)
        return use

    def join(self) -> None:
        self._users += 1
        self.exchange.grow_to(min(self._users + 1, self.options.pool_size))
        self.leases.grow_to(min(self._users, LEASES_MAX))

    async def leave(self) -> None:
        self._users -= 1
        if self._users == 0:
            for pool in (self.exchange, self.leases, self.shared):
                pool.close()
            self.hints.close()
        await trio.lowlevel.checkpoint()

    def _gate(self, params: ConnDict, on_doubt: Callable[[], None] = lambda: None) -> Gate:
        hosts = Hosts(params, self.options.connect_timeout_seconds)

        async def dial() -> TrioConnection:
            return await setup.dial(hosts, self.options, setup.PLANNER)

        options = self.options
        pause = (options.reconnect_base_seconds, options.reconnect_max_seconds)
        return Gate(dial, addresses.address(params), Backoff(*pause, self._rng), on_doubt)


class HubScan:
    """See `store.idle_tenant_scan.TenantScan`: one statement for all schemas of a database."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._schemas: dict[str, str] = {}
        self._statements: dict[tuple[str, tuple[str, ...]], Numbered] = {}  # the last ones used

    @property
    def tenants(self) -> list[str]:
        return list(self._schemas)

    @property
    def use_now(self) -> ConnectionUse:
        return self.hub.use_now if self.hub.is_used else ConnectionUse()

    def add(self, tenant: str, schema: str) -> None:
        self._schemas[tenant] = schema
        self._statements.clear()

    def remove(self, tenant: str) -> None:
        self._schemas.pop(tenant, None)
        self._statements.clear()

    async def look(self, tenants: Sequence[str]) -> Mapping[str, TenantActivity]:
        found: dict[str, TenantActivity] = {}
        for some in _groups(tenants):
            statement = self._statement("tenant_activity", some)
            with trio.move_on_after(self.hub.options.statement_timeout_seconds):
                async with self.hub.shared.use("tenant_activity") as conn:
                    cursor = await send(conn, statement, FOR_NOBODY)
                    rows = await cursor.fetchall()
                    found |= {row[0]: TenantActivity(row[1], row[2]) for row in rows}
        return found

    async def check(self, tenants: Sequence[str], me: UUID) -> Mapping[str, IdleCheck]:
        found: dict[str, IdleCheck] = {}
        for some in _groups(tenants):
            statement = self._statement("tenant_idle_check", some)
            rows = await self.hub.hints.ask(statement, {"me": me}) or []
            found |= {row[0]: IdleCheck(*row[1:]) for row in rows}
        return found

    def _statement(self, name: str, tenants: tuple[str, ...]) -> Numbered:
        """One for each tenant, joined."""
        if (name, tenants) not in self._statements:
            if len(self._statements) >= STATEMENTS_MAX:
                self._statements.clear()
            texts = load_statements("musterd.store.postgres")
            one = texts[name]
            for part in ("observe", "idle_check"):
                one = one.replace(f"{{{part}}}", texts[part])
            # Names of tenants and schemas are checked identifiers.
            parts = [fill(one, self._schemas[each]).replace("{tenant}", each) for each in tenants]
            joined = "union all\n".join(f"({part})\n" for part in parts)
            self._statements[name, tenants] = numbered(joined)
        return self._statements[name, tenants]


def _groups(tenants: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(tenants[first : first + AT_ONCE]) for first in range(0, len(tenants), AT_ONCE)]


class PostgresEngine:
    """See `store.engine.Engine`, and for each part its protocol."""

    name = "postgresql"

    def __init__(
        self,
        url: str,
        schema: str,
        options: setup.StoreOptions,
        rng: random.Random,
        hub: Hub | None = None,
    ) -> None:
        """`hub`: the connections, where they are shared with the engines of other tenants."""
        self._hub = hub = hub or Hub(url, options, rng)
        hub.join()
        self._is_closed = False
        self._schema = schema
        self.where = f"{hub.where}, schema {schema}"
        sql = statements_of(schema)
        limit_seconds = options.statement_timeout_seconds
        statements = Statements(sql, hub.shared, limit_seconds, TimeLimit)
        run, execute, send = statements.run, statements.execute, statements.send
        marks = Marks()
        claimer = Claimer(send, statements.ask, marks, ms(options.lock_timeout_seconds))
        exchanger = Exchanger(hub.exchange, claimer, limit_seconds)
        self.jobs = PostgresJobs(statements)
        self.leases = PostgresLeases(statements, exchanger, marks, hub.exchange, hub.leases)
        self.control = PostgresControl(statements)
        self.nodes = PostgresNodes(statements)
        self.phases = PostgresPhases(statements.run_soon)
        self.events = PostgresEvents(run, execute)
        self.outbox = PostgresOutbox(run, execute)
        self.schedules = PostgresSchedules(run, execute)
        self.duties = PostgresDuties(run, execute)
        self.queue = PostgresQueue(statements, self.jobs, self.duties, exchanger.claimer, hub.hints)
        self.retention = PostgresRetention(hub.shared, run, send, self.jobs.whole, limit_seconds)
        self.journal = PostgresScalingJournal(run, execute)
        self.idle = PostgresIdleChecks(hub.hints, sql["idle_check"], marks)
        self.overview = PostgresOverview(run)
        self.audit = PostgresAudit(run, send, hub.shared)
        self.health = PostgresHealth(run, hub.shared, hub.gate)
        self.history = PostgresHistory(statements)

    async def open(self) -> None:
        async with self._hub.shared.use("opening the store") as conn:
            setup.check_version(conn, self.where)

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.queue.hear_no_more()
            await self._hub.leave()

    async def schema(self) -> SchemaState:
        async with self._hub.shared.use("reading the schema's version") as conn:
            return await compare(conn, self._schema, self.where)

    async def migrate(self) -> list[str]:
        async with self._hub.migrating, self._hub.shared.use("migrating the schema") as conn:
            return await migrate(conn, self._schema, self.where)

    async def start_node(self, node: str) -> int:
        del node  # leases name their node; nothing else has to
        await trio.lowlevel.checkpoint()
        return 0
