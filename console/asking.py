"""What `musterd status` finds out: of the stores, several at once, and of the daemon here."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING, Any

import attrs

from musterd.config.tenant_names import DEFAULT_TENANT
from musterd.console.ask import NodeSilent, ask_node
from musterd.console.exits import Complaint, Exit
from musterd.console.judging import Answers, judge, served

if TYPE_CHECKING:
    from collections.abc import Sequence

    from musterd.config.settings import Settings
    from musterd.store.board import Troubles
    from musterd.store.duties import DutyRecord
    from musterd.store.engine import Engine
    from musterd.store.job import Counts
    from musterd.store.nodes import NodeRecord
    from musterd.store.opening import Stores

ASKED_AT_ONCE = 8
NAMED = 5  # tenants that are not well


@attrs.frozen
class Asked:
    """What a tenant's store has answered. Where `error` says why it has not, all else is empty."""

    settings: Settings
    where: str
    error: str | None = None
    counts: Counts | None = None
    nodes: Sequence[NodeRecord] = ()
    troubles: Troubles | None = None
    duties: Sequence[DutyRecord] = ()

    @property
    def warnings(self) -> Sequence[str]:
        """What its nodes do not agree on."""
        from musterd.store.disagreement import warnings

        return warnings(self.nodes)


@attrs.frozen
class Seen:
    """What was found out: about the stores, the first of which is the one that was asked about, and
    about the node. `listens`: a daemon is expected to answer.
    """

    asked: Sequence[Asked]
    node: dict[str, Any] | None
    silence: str
    listens: bool

    @property
    def first(self) -> Asked:
        return self.asked[0]

    @property
    def warnings(self) -> list[str]:
        """What nodes do not agree on; those that serve several tenants say so in each store."""
        return list(dict.fromkeys(said for asked in self.asked for said in asked.warnings))

    def on_node(self, asked: Asked) -> dict[str, Any] | None:
        """What the node says of a tenant; None = it does not serve it, or works elsewhere."""
        return served(self.node, asked.settings.tenant, asked.where)

    def is_well(self, asked: Asked) -> bool:
        """Whether its store answers, and the node serves it."""
        found = self.on_node(asked)
        if found is None or asked.error is not None:
            return False
        return found["phase"] == "running" and not found["store_trouble"]

    def judged(self) -> tuple[Exit, str]:
        """Whether all is well, and one line that says why."""
        first = self.first
        tenant, where, error = first.settings.tenant, first.where, first.error
        code, words = judge(Answers(tenant, where, error, self.node, self.silence, self.listens))
        if code is not Exit.DONE or self.node is None:
            return code, words
        ill = [asked.settings.tenant for asked in self.asked if not self.is_well(asked)]
        if not ill:
            return code, words
        more = f" and {len(ill) - NAMED} more" if len(ill) > NAMED else ""
        return Exit.UNSUCCESSFUL, f"{words}, but not for {', '.join(ill[:NAMED])}{more}"


def find_out(settings: Settings, tenants: Sequence[Settings]) -> Seen:
    """Asks the stores of these tenants, and the daemon. Raises what makes the first one useless."""
    asked = _ask_stores(tenants)
    node, silence = _ask_node(settings)
    return Seen(asked, node, silence, bool(settings.http.listen))


def _ask_stores(tenants: Sequence[Settings]) -> list[Asked]:
    import trio

    from musterd.store.opening import Stores

    found: list[Asked | None] = [None] * len(tenants)
    stores = Stores(time.time, random.Random())

    async def ask(place: int, limit: trio.CapacityLimiter) -> None:
        async with limit:
            found[place] = await _ask_store(stores, tenants[place], alone=len(tenants) == 1)

    async def ask_all() -> None:
        limit = trio.CapacityLimiter(ASKED_AT_ONCE)
        async with trio.open_nursery() as nursery:
            for place in range(len(tenants)):
                nursery.start_soon(ask, place, limit)

    trio.run(ask_all)
    return [asked for asked in found if asked is not None]


async def _ask_store(stores: Stores, settings: Settings, *, alone: bool) -> Asked:
    """What makes the only store useless ends the verb; of several it is said of that one."""
    from musterd.config.store_url import resolve_store_url
    from musterd.console.opening import reached
    from musterd.store.errors import StoreMisconfigured, StoreUnavailable

    engine = stores.engine(resolve_store_url(settings, os.environ), settings)
    try:
        async with reached(engine):
            return await _answers(engine, settings)
    except StoreUnavailable as error:
        return Asked(settings, engine.where, str(error))
    except (StoreMisconfigured, Complaint) as error:
        if alone or settings.tenant == DEFAULT_TENANT:
            raise
        return Asked(settings, engine.where, str(error))


async def _answers(engine: Engine, settings: Settings) -> Asked:
    """Nothing of it grows with the queue."""
    return Asked(
        settings,
        engine.where,
        counts=await engine.counts(),
        nodes=await engine.nodes(),
        troubles=await engine.board.troubles(),
        duties=await engine.duties.duties(),
    )


def _ask_node(settings: Settings) -> tuple[dict[str, Any] | None, str]:
    try:
        return ask_node(settings, "/status"), ""
    except NodeSilent as silence:
        return None, str(silence)
