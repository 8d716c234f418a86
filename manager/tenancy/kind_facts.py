"""What a node says of its kinds to those who have no catalog at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from musterd.catalog.kinds import Catalog, Pipeline, WorkKind
from musterd.config.settings import Settings
from musterd.store.errors import StoreError
from musterd.store.phases import KindRule
from musterd.store.waiting import Backoff, Bell

if TYPE_CHECKING:
    from musterd.manager.tenancy.deps import TenancyDeps

EVERY_KIND = ""
PAUSE_SECONDS = 1.0  # after a failed try, doubled with each further one
PAUSE_SECONDS_MAX = 60.0


def kind_rules(catalog: Catalog, settings: Settings) -> Mapping[str, KindRule]:
    """Of every kind, also of those of which there is nothing to say: what was said is forgotten."""
    rules = {kind.name: rule_of(kind) for kind in catalog.values()}
    return {**rules, EVERY_KIND: KindRule(webhook=settings.webhooks.url or None)}


def rule_of(kind: WorkKind) -> KindRule:
    names = kind.behaviour.names if isinstance(kind.behaviour, Pipeline) else ()
    return KindRule(phases=names, webhook=kind.webhook)


@attrs.define(eq=False)
class KindPublisher:
    """Owned by a tenancy. Tells the store of all kinds at the start, and after each `wake`."""

    deps: TenancyDeps
    _bell: Bell = attrs.field(factory=Bell, init=False)

    def __attrs_post_init__(self) -> None:
        self.deps.settings.subscribe(self.wake)

    def wake(self) -> None:
        """The catalog has changed."""
        self._bell.ring()

    async def run(self) -> None:
        while True:
            self._bell.clear()
            await self._tell()
            await self._bell.wait()

    async def _tell(self) -> None:
        deps = self.deps
        backoff = Backoff(PAUSE_SECONDS, PAUSE_SECONDS_MAX, deps.rng)
        while True:
            try:
                return await deps.engine.nodes.declare_kinds(
                    kind_rules(deps.catalog(), deps.settings.now)
                )
            except StoreError:  # the store's own watcher has told the log
                await backoff.sleep()
