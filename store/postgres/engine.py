"""The Engine on PostgreSQL: one schema, reached through the connections of a hub."""

from __future__ import annotations

import random

import trio

from musterd.store.engine import SchemaState
from musterd.store.postgres import setup
from musterd.store.postgres.control import PostgresControl
from musterd.store.postgres.duties import PostgresDuties, PostgresSchedules
from musterd.store.postgres.events import PostgresAudit, PostgresEvents
from musterd.store.postgres.exchange import Exchanger
from musterd.store.postgres.health import PostgresHealth
from musterd.store.postgres.hub import Hub
from musterd.store.postgres.jobs import PostgresJobs
from musterd.store.postgres.leases import PostgresLeases
from musterd.store.postgres.marks import Marks
from musterd.store.postgres.migrating import channel_of, compare, fill, migrate
from musterd.store.postgres.nodes import PostgresNodes
from musterd.store.postgres.outbox import PostgresOutbox
from musterd.store.postgres.overview import PostgresOverview
from musterd.store.postgres.phases import PostgresPhases
from musterd.store.postgres.queue import PostgresIdleChecks, PostgresQueue
from musterd.store.postgres.retention import PostgresRetention
from musterd.store.postgres.statements import Statements, numbered
from musterd.store.sqlfiles import load_statements


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
        self._channel = channel_of(schema)
        sql = {
            name: numbered(fill(text, schema))
            for name, text in load_statements("musterd.store.postgres").items()
        }
        limit_seconds = options.statement_timeout_seconds
        statements = Statements(sql, hub.shared, limit_seconds)
        run, execute, send = statements.run, statements.execute, statements.send
        marks = Marks()
        exchanger = Exchanger(hub.exchange, send, marks, limit_seconds)
        self.jobs = PostgresJobs(statements)
        self.leases = PostgresLeases(statements, exchanger, marks, hub.exchange, hub.leases)
        self.control = PostgresControl(statements)
        self.nodes = PostgresNodes(statements)
        self.phases = PostgresPhases(run, execute)
        self.events = PostgresEvents(run, execute)
        self.outbox = PostgresOutbox(run, execute)
        self.schedules = PostgresSchedules(run, execute)
        self.duties = PostgresDuties(run, execute)
        self.queue = PostgresQueue(
            statements, self.jobs, self.duties, exchanger.claimer, hub.hints, self._channel
        )
        self.retention = PostgresRetention(hub.shared, run, send, self.jobs.whole, limit_seconds)
        self.idle = PostgresIdleChecks(hub.hints, sql["idle_check"], marks)
        self.overview = PostgresOverview(run)
        self.audit = PostgresAudit(run, send, hub.shared)
        self.health = PostgresHealth(run, hub.shared, hub.gate)

    async def open(self) -> None:
        async with self._hub.shared.use("opening the store") as conn:
            setup.check_version(conn, self.where)

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._hub.hints.forget(self._channel)
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
