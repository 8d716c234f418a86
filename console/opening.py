"""Opens the store for one verb, and closes it again."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

from musterd.config.load import resolve_store_url
from musterd.config.settings import Settings
from musterd.console.output import Complaint, Exit
from musterd.store.engine import Engine
from musterd.store.opening import make_engine

T = TypeVar("T")
Work = Callable[[Engine], Awaitable[T]]
CLOSE_SECONDS = 5.0


def engine_for(settings: Settings) -> Engine:
    """The engine of the configured store; opens nothing."""
    return make_engine(resolve_store_url(settings, os.environ), settings, time.time)


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
    """The open engine, its schema checked unless `bare`. Raises StoreError or a complaint."""
    try:
        await engine.open()
        if not bare:
            await _check_schema(engine, creates=creates)
        yield engine
    finally:
        with trio.move_on_after(CLOSE_SECONDS, shield=True):
            await engine.close()


async def each_in_order(asks: Sequence[Callable[[], Awaitable[T]]], at_once: int) -> list[T]:
    """The results in order; at most `at_once` run at the same time."""
    found: dict[int, T] = {}
    limit = trio.CapacityLimiter(at_once)

    async def ask(place: int) -> None:
        async with limit:
            found[place] = await asks[place]()

    async with trio.open_nursery() as nursery:
        for place in range(len(asks)):
            nursery.start_soon(ask, place)
    return [found[place] for place in sorted(found)]


async def _check_schema(engine: Engine, *, creates: bool) -> None:
    """Complains if the store's schema is not this program's."""
    state = await engine.schema()
    if state.found == state.wanted:
        return
    if state.found < state.wanted and (engine.name == "sqlite" or (creates and not state.found)):
        await engine.migrate()
        return
    if state.found > state.wanted:
        what = f"the schema is at version {state.found}, this musterd knows up to {state.wanted}"
        advice = "upgrade this musterd"
    elif state.found == 0:
        what, advice = "there is no schema yet", "start the daemon or run `musterd db migrate`"
    else:
        what = f"the schema is at version {state.found}, this musterd needs {state.wanted}"
        advice = "start the daemon of this version or run `musterd db migrate`"
    raise Complaint(Exit.CONFIGURATION, f"{engine.where}: {what}", advice)
