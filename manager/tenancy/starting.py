"""Opens a tenant's store at the start and declares the kinds there."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs
import trio

from musterd.catalog.kinds import Catalog, Pipeline, WorkKind
from musterd.config.settings import Settings
from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.manager.log import event
from musterd.store.errors import StoreError, StoreMisconfigured, StoreUnavailable
from musterd.store.phases import KindRule
from musterd.store.waiting import Backoff, Bell

if TYPE_CHECKING:
    from collections.abc import Callable

    from musterd.manager.tenancy.deps import TenancyDeps


EVERY_KIND = ""
KINDS_PAUSE_SECONDS = 1.0  # after a failed try, doubled with each further one
KINDS_PAUSE_SECONDS_MAX = 60.0


def kind_rules(catalog: Catalog, settings: Settings) -> Mapping[str, KindRule]:
    """For every kind, even those without rules: earlier declarations are replaced."""
    rules = {kind.name: rule_of(kind) for kind in catalog.values()}
    return {**rules, EVERY_KIND: KindRule(webhook=settings.webhooks.url or None)}


def rule_of(kind: WorkKind) -> KindRule:
    names = kind.behaviour.names if isinstance(kind.behaviour, Pipeline) else ()
    return KindRule(phases=names, webhook=kind.webhook, priority=kind.priority)


@attrs.define(eq=False)
class KindPublisher:
    """Owned by a tenancy. Declares all kinds at the start and after each reload."""

    deps: TenancyDeps
    _bell: Bell = attrs.field(factory=Bell, init=False)

    def __attrs_post_init__(self) -> None:
        self.deps.settings.subscribe(self._bell.ring)

    async def run(self) -> None:
        backoff = Backoff(KINDS_PAUSE_SECONDS, KINDS_PAUSE_SECONDS_MAX, self.deps.rng)
        while True:
            self._bell.clear()
            try:
                await _declare_kinds(self.deps)
            except StoreError:  # the engine has logged it
                await backoff.sleep()
            else:
                backoff.succeeded()
                await self._bell.wait()


async def _declare_kinds(deps: TenancyDeps) -> None:
    rules = kind_rules(deps.catalog(), deps.settings.now)
    await deps.engine.nodes.declare_kinds(rules, deps.tenant)


PAUSE_SECONDS = 0.25  # after a failed attempt, doubled with each further one
PAUSE_SECONDS_MAX = 5.0
MISCONFIGURED_SECONDS = 30.0  # between two tries of a store that refuses us: somebody may mend it


async def open_store_in_time(deps: TenancyDeps, tried: Callable[[], None]) -> None:
    """Like `open_store`, but also retries a store that refuses us, unless it is the default
    tenant's. Calls `tried` once the store was asked, whatever the result.
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
    """Returns when the store is open, its schema up to date, and this node registered. Calls
    `on_failure` after each failed attempt. Raises `StoreMisconfigured`: a wrong password, a newer
    schema, and the like.
    """
    backoff = Backoff(PAUSE_SECONDS, PAUSE_SECONDS_MAX, deps.rng)
    while True:
        try:
            await deps.engine.open()
            await _prepare_schema(deps)
            await deps.engine.start_node(deps.node)
            await _declare_kinds(deps)
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
