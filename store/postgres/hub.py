"""The connections to one database: of one engine alone, or shared by those of all its tenants.

Three ways in: claims and renewals have connections that nothing else can hold up, everything else
shares a small pool. However many tenants there are, their number is bounded.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

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
from musterd.store.sqlfiles import load_statements
from musterd.store.waiting import Backoff

AT_ONCE = 100  # tenants in one statement
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
        self._statements: dict[tuple[str, ...], bytes] = {}  # the last ones used

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
        for first in range(0, len(tenants), AT_ONCE):
            found |= await self._look_at(tuple(tenants[first : first + AT_ONCE]))
        return found

    async def _look_at(self, tenants: tuple[str, ...]) -> Mapping[str, TenantActivity]:
        if tenants not in self._statements:
            if len(self._statements) >= STATEMENTS_MAX:
                self._statements.clear()
            self._statements[tenants] = _activity_statement(
                {name: self._schemas[name] for name in tenants}
            )
        statement = self._statements[tenants]
        with trio.move_on_after(self.hub.options.statement_timeout_seconds):
            async with self.hub.shared.use("tenant_activity") as conn:
                cursor = await conn.cursor(binary=True).execute(statement, FOR_NOBODY)
                return {row[0]: TenantActivity(row[1], row[2]) for row in await cursor.fetchall()}
        return {}


def _activity_statement(schemas: Mapping[str, str]) -> bytes:
    statements = load_statements("musterd.store.postgres")
    one = statements["tenant_activity"].replace("{observe}", statements["observe"])
    # Names of tenants and schemas are checked identifiers.
    parts = [fill(one, schema).replace("{tenant}", tenant) for tenant, schema in schemas.items()]
    return "union all\n".join(f"({part})\n" for part in parts).encode()
