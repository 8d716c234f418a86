"""From settings to an engine: made by its URL, opened with its schema checked, and closed again."""

from __future__ import annotations

import os
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import attrs
import trio

from musterd.store.connections import ConnectionUse
from musterd.store.embedded import sqlite_path
from musterd.store.errors import StoreMisconfigured

if TYPE_CHECKING:
    from musterd.config.settings import Settings
    from musterd.store.engine import Engine
    from musterd.store.idle_tenant_scan import TenantScan
    from musterd.store.postgres.engine import HubScan
    from musterd.store.postgres.setup import StoreOptions
    from musterd.store.scratch import ScratchStore
    from musterd.store.sqlite.engine import SqliteEngine
    from musterd.store.sqlite.idle_tenant_scan import FileScan

T = TypeVar("T")
Work: TypeAlias = "Callable[[Engine], Awaitable[T]]"
CLOSE_SECONDS = 5.0


def in_store(settings: Settings, work: Work[T], *, creates: bool = False, bare: bool = False) -> T:
    """Does `work` with the open store, after checking its schema. `creates`: an empty PostgreSQL
    gets a schema, if `store.migrate` allows it. `bare`: any schema will do.
    """
    return trio.run(lambda: visit(settings, work, creates=creates, bare=bare))


async def visit(
    settings: Settings, work: Work[T], *, creates: bool = False, bare: bool = False
) -> T:
    """Like `in_store`, inside Trio."""
    may_create = creates and settings.store.migrate
    async with reached(engine_for(settings), creates=may_create, bare=bare) as engine:
        return await work(engine)


@asynccontextmanager
async def reached(
    engine: Engine, *, creates: bool = False, bare: bool = False
) -> AsyncGenerator[Engine]:
    """The open engine, its schema checked unless `bare`. Raises StoreError."""
    try:
        await engine.open()
        if not bare:
            await _check_schema(engine, creates=creates)
        yield engine
    finally:
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await engine.close()


async def _check_schema(engine: Engine, *, creates: bool) -> None:
    state = await engine.schema()
    if state.found == state.wanted:
        return
    if engine.name == "sqlite" or (creates and not state.found):
        await engine.migrate()
        return
    raise StoreMisconfigured(f"{engine.where}: {state.fault}")


def engine_for(settings: Settings) -> Engine:
    """The engine of the configured store; opens nothing."""
    from musterd.config.load import resolve_store_url

    return make_engine(resolve_store_url(settings, os.environ), settings, time.time)


def make_engine(
    url: str, settings: Settings, wall_clock: Callable[[], float], rng: random.Random | None = None
) -> Engine:
    """The engine for a resolved URL, not yet opened. Only the one asked for is imported."""
    return Stores(wall_clock, rng or random.Random()).engine(url, settings)


def make_scratch(url: str, settings: Settings, name: str) -> ScratchStore:
    """A store for the occasion in the place of a resolved URL, not yet made. `name` is a
    `scratch.scratch_name`.
    """
    if url.startswith("sqlite:"):
        from musterd.store.sqlite.scratch import ScratchFolder

        return ScratchFolder(sqlite_path(url), name, settings.store.schema)
    from musterd.store.postgres.scratch import ScratchSchema

    return ScratchSchema(url, _options(settings), name)


class Stores:
    """Makes the engines of a node's tenants: those in one database share its connections, and one
    scan looks after all of them.
    """

    def __init__(
        self,
        wall_clock: Callable[[], float],
        rng: random.Random,
        boottime: Callable[[], float] | None = None,
    ) -> None:
        """`boottime`: for daemons."""
        self._wall_clock, self._boottime = wall_clock, boottime
        self._rng = rng
        self._databases: dict[str, HubScan] = {}  # by URL
        self._files: FileScan | None = None
        self._embedded: dict[str, SqliteEngine] = {}  # by tenant

    def engine(self, url: str, settings: Settings) -> Engine:
        """The engine of the tenant that sees these settings, not yet opened."""
        if url.startswith("sqlite:"):
            return self._sqlite(url, settings)
        from musterd.store.postgres.engine import PostgresEngine

        options, schema = _options(settings), settings.store.schema
        database = self._database(url, options)
        database.add(settings.tenant, schema)
        return PostgresEngine(url, schema, options, self._rng, database.hub)

    def forget(self, tenant: str) -> None:
        """This tenant's engine is closed."""
        for database in self._databases.values():
            database.remove(tenant)
        self._embedded.pop(tenant, None)
        if self._files is not None:
            self._files.remove(tenant)

    @property
    def scans(self) -> Sequence[TenantScan]:
        return [*self._databases.values(), *([self._files] if self._files is not None else [])]

    def use_now(self) -> ConnectionUse:
        """How all connections are used; may be called in any thread."""
        use = ConnectionUse()
        for database in self._databases.copy().values():
            use = use.plus(database.use_now)
        for engine in self._embedded.copy().values():
            use = use.plus(engine.use_now)
        return use

    def _sqlite(self, url: str, settings: Settings) -> Engine:
        from musterd.store.sqlite.engine import SqliteEngine
        from musterd.store.sqlite.idle_tenant_scan import FileScan

        self._files = self._files or FileScan()
        path = sqlite_path(url)
        self._files.add(settings.tenant, path)
        engine = self._embedded[settings.tenant] = SqliteEngine(
            str(path),
            self._wall_clock,
            busy_timeout_seconds=settings.store.lock_timeout_seconds,
            boottime=self._boottime,
        )
        return engine

    def _database(self, url: str, options: StoreOptions) -> HubScan:
        from musterd.store.postgres.engine import Hub, HubScan

        known = self._databases.get(url)
        # Its last tenant may have left, and closed its connections.
        if known is None or not known.hub.is_used:
            known = self._databases[url] = HubScan(Hub(url, options, self._rng))
        return known


def _options(settings: Settings) -> StoreOptions:
    from musterd.store.postgres.setup import StoreOptions

    names = [one.name for one in attrs.fields(StoreOptions)]
    return StoreOptions(**{name: getattr(settings.store, name) for name in names})
