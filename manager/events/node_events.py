"""What a tenancy has to do with the log of events: adds to it, keeps it, lets others follow it."""

from __future__ import annotations

from collections.abc import Callable

import trio

from musterd import __version__
from musterd.manager.duties.events import EventKeeper
from musterd.manager.events.event_writer import EventWriter
from musterd.manager.events.feed.feed import Feed
from musterd.manager.node.objects import decision_object
from musterd.manager.node.status import Decision
from musterd.manager.tenancy.deps import TenancyDeps


class NodeEvents:
    """Owned by its tenancy, which runs it."""

    def __init__(self, deps: TenancyDeps, is_on_duty: Callable[[], bool]) -> None:
        engine = deps.engine
        self.feed = Feed(deps.tenant, engine.events, engine.queue.counts)
        self.event_writer = EventWriter(engine.events, deps.log, deps.node, self.news)
        self.keeper = EventKeeper(engine.events, deps.settings, deps.rng, is_on_duty)

    def news(self) -> None:
        """This node has done something in the store. Cheap."""
        self.feed.news()
        self.keeper.news()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.event_writer.run)
            nursery.start_soon(self.keeper.run)
            nursery.start_soon(self.feed.run)

    def node_is(self, state: str) -> None:
        """started | draining | stopped"""
        self.event_writer.announce(f"node.{state}", version=__version__)

    def crew_changed(self, how: str, worker: int) -> None:
        self.event_writer.announce(f"worker.{how}", worker=worker)

    def scaled(self, decision: Decision) -> None:
        """Only decisions that changed the crew are events."""
        if decision.hired or decision.taken_back or decision.retired:
            self.event_writer.announce("scale.decided", **decision_object(decision))

    async def finish(self) -> None:
        """The crew has gone: tells so, and lets those who follow go when they have read it. Takes a
        few seconds at most.
        """
        self.node_is("stopped")
        await self.event_writer.finish()
        await self.feed.close()
