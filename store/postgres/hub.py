"""The connections to one database: of one engine alone, or shared by those of all its tenants.

Three ways in: claims and renewals have connections that nothing else can hold up, everything else
shares a small pool. However many tenants there are, their number is bounded.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import trio
from psycopg.abc import ConnDict

from musterd.store.connections import ConnectionUse
from musterd.store.idle_tenant_scan import TenantActivity
from musterd.store.leases import EXCHANGES_AT_ONCE
from musterd.store.postgres import setup
from musterd.store.postgres.connection import TrioConnection
from musterd.store.postgres.hints import Hints
from musterd.store.postgres.hosts import Hosts
from musterd.store.postgres.marks import FROM_THE_FIRST, start_params
from musterd.store.postgres.migrating import fill
from musterd.store.postgres.pool import Gate, Pool
from musterd.store.postgres.statements import Numbered, numbered, send
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
        self.params = setup.connection_params(url)
        self.where = setup.address(self.params)
        self.options = options
        self._rng = rng
        listening = (
            setup.connection_params(options.listen_url) if options.listen_url else self.params
        )
        self.hints = Hints(self._gate(listening))
        self.gate = gate = self._gate(self.params, self.hints.doubt)
        self.exchange, self.leases = Pool(gate, EXCHANGES_AT_ONCE), Pool(gate, 1)
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
        return Gate(dial, setup.address(params), Backoff(*pause, self._rng), on_doubt)


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
