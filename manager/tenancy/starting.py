"""Opens the store at start: waits while it is away, stops where waiting will not help."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.log import event
from musterd.manager.tenancy.kind_facts import kind_rules
from musterd.store.errors import StoreMisconfigured, StoreUnavailable
from musterd.store.waiting import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

    from musterd.manager.tenancy.deps import TenancyDeps

PAUSE_SECONDS = 0.25  # after a failed attempt, doubled with each further one
PAUSE_SECONDS_MAX = 5.0
MISCONFIGURED_SECONDS = 30.0  # between two tries of a store that refuses us: somebody may mend it


async def open_store_in_time(deps: TenancyDeps, tried: Callable[[], None]) -> None:
    """As `open_store`; a store that refuses us is tried again too, unless it is the default
    tenant's. `tried` is called once it has been asked, whatever came of it.
    """
    while True:
        try:
            await open_store(deps, tried)
        except StoreMisconfigured as error:
            tried()
            if deps.tenant == DEFAULT_TENANT:
                raise
            event(deps.log, logging.ERROR, "tenant's store cannot be used", message=str(error))
            await trio.sleep(MISCONFIGURED_SECONDS)
        else:
            tried()
            return


async def open_store(deps: TenancyDeps, on_failure: Callable[[], None]) -> None:
    """Returns with the store open, its schema up to date, and this node at home in it.
    `on_failure` is called after each try that has failed.

    Raises `StoreMisconfigured`: wrong password, a schema that is newer than this program, and the
    like.
    """
    backoff = Backoff(PAUSE_SECONDS, PAUSE_SECONDS_MAX, deps.rng)
    while True:
        try:
            await deps.engine.open()
            await _prepare_schema(deps)
            await deps.engine.start_node(deps.node)
            await deps.engine.nodes.declare_kinds(kind_rules(deps.catalog(), deps.settings.now))
        except StoreUnavailable as error:
            seconds = backoff.failed()
            fields = {"trouble": error.trouble, "message": str(error), "next_try_seconds": seconds}
            event(deps.log, logging.WARNING, "waiting for the store", **fields)
            on_failure()
            await trio.sleep(seconds)
        else:
            return


async def _prepare_schema(deps: TenancyDeps) -> None:
    state = await deps.engine.schema()
    if state.found == state.wanted:
        return
    if not deps.settings.now.store.migrate and deps.engine.name != "sqlite":
        found = f"at version {state.found}" if state.found else "not there"
        raise StoreMisconfigured(
            f"{deps.engine.where}: the schema is {found}, this musterd needs {state.wanted}, and"
            " [store] migrate = false: run `musterd db migrate`"
        )
    for name in await deps.engine.migrate():
        event(deps.log, logging.INFO, "migration applied", name=name)
