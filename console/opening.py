"""Opening the store for one verb, and closing it again."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from musterd.console.output import Complaint, Exit

if TYPE_CHECKING:
    from musterd.config.settings import Settings
    from musterd.store.engine import Engine

T = TypeVar("T")
CLOSE_SECONDS = 5.0


def engine_for(settings: Settings) -> Engine:
    """Makes the engine of the configured store; opens nothing."""
    from musterd.config.store_url import resolve_store_url
    from musterd.store.opening import make_engine

    return make_engine(resolve_store_url(settings, os.environ), settings, time.time)


def in_store(
    settings: Settings, work: Callable[[Engine], Awaitable[T]], *, creates: bool = False
) -> T:
    """Does `work` with the open store, once its schema is known to be the right one.

    `creates`: a PostgreSQL that has no schema yet gets one, if `store.migrate` allows it.
    """

    import trio

    return trio.run(lambda: visit(settings, work, creates=creates))


async def visit(
    settings: Settings, work: Callable[[Engine], Awaitable[T]], *, creates: bool = False
) -> T:
    """Like `in_store`, inside Trio."""

    async def checked(engine: Engine) -> T:
        await _check_schema(engine, creates=creates and settings.store.migrate)
        return await work(engine)

    return await _opened(settings, checked)


def in_bare_store(settings: Settings, work: Callable[[Engine], Awaitable[T]]) -> T:
    """Does `work` with the open store, whatever schema it has."""
    import trio

    return trio.run(lambda: _opened(settings, work))


@asynccontextmanager
async def reached(engine: Engine) -> AsyncGenerator[Engine, None]:
    """The engine while it is open, known to have the right schema. Raises `StoreUnavailable`,
    `StoreMisconfigured` or a complaint.
    """
    import trio

    try:
        await engine.open()
        await _check_schema(engine, creates=False)
        yield engine
    finally:
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await engine.close()


async def _opened(settings: Settings, work: Callable[[Engine], Awaitable[T]]) -> T:
    import trio

    engine = engine_for(settings)
    try:
        await engine.open()
        return await work(engine)
    finally:
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await engine.close()


async def _check_schema(engine: Engine, *, creates: bool) -> None:
    """Complains where the store has another schema than this program brings."""
    state = await engine.schema()
    if state.found == state.wanted:
        return
    if state.found > state.wanted:
        what = f"the schema is at version {state.found}, this musterd knows up to {state.wanted}"
        raise Complaint(Exit.CONFIGURATION, f"{engine.where}: {what}", "upgrade this musterd")
    if engine.name == "sqlite" or (creates and state.found == 0):
        await engine.migrate()
        return
    if state.found == 0:
        advice = "start the daemon or run `musterd db migrate`"
        raise Complaint(Exit.CONFIGURATION, f"{engine.where}: there is no schema yet", advice)
    what = f"the schema is at version {state.found}, this musterd needs {state.wanted}"
    advice = "start the daemon of this version or run `musterd db migrate`"
    raise Complaint(Exit.CONFIGURATION, f"{engine.where}: {what}", advice)
