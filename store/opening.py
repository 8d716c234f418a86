"""From a URL to the engine behind it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from musterd.config.store_url import sqlite_path

if TYPE_CHECKING:
    from musterd.config.settings import Settings
    from musterd.store.engine import Engine


def make_engine(
    url: str, settings: Settings, wall_clock: Callable[[], float], dice: random.Random | None = None
) -> Engine:
    """The engine for a resolved URL, not yet opened. Only the one asked for is imported."""
    if url.startswith("sqlite:"):
        from musterd.store.sqlite.engine import SqliteEngine

        return SqliteEngine(
            str(sqlite_path(url)),
            wall_clock,
            busy_timeout_seconds=settings.store.lock_timeout_seconds,
        )
    from musterd.store.postgres.engine import PostgresEngine
    from musterd.store.postgres.setup import StoreOptions

    store = settings.store
    options = StoreOptions(
        pool_size=store.pool_size,
        connect_timeout_seconds=store.connect_timeout_seconds,
        statement_timeout_seconds=store.statement_timeout_seconds,
        lock_timeout_seconds=store.lock_timeout_seconds,
        idle_transaction_timeout_seconds=store.idle_transaction_timeout_seconds,
        reconnect_base_seconds=store.reconnect_base_seconds,
        reconnect_max_seconds=store.reconnect_max_seconds,
        listen_url=store.listen_url,
    )
    return PostgresEngine(url, store.schema, options, dice or random.Random())
