"""Several nodes on one store, each with a line of its own to it that can be cut: the product's own
daemons, on a clock that jumps.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

from tests.support.faulty_engine import FaultyEngine
from tests.support.stage import Node, Stage, open_stage, until

T = TypeVar("T")

INTERVAL_SECONDS = 1.0  # between decisions, as shipped
NODES, FLOOR, MOST = 5, 2, 8  # their number, and the shipped counts of each
LAG_SECONDS = 0.1  # with this all decide before any of them has claimed
WATCH_SECONDS = 0.02


class Line(FaultyEngine):
    """A node's own way to the store; what goes over it is in the history of the whole store.

    `lag_seconds` is how long a call is under way, there and back.
    """

    def __init__(self, store: FaultyEngine, nursery: trio.Nursery) -> None:
        super().__init__(store.engine, nursery)
        self.deeds = store.deeds
        self.lag_seconds = 0.0
        self._thawed = trio.Event()
        self._thawed.set()

    def freeze(self) -> None:
        """From now on calls hang, and answers too: they come when it thaws."""
        self._thawed = trio.Event()

    def thaw(self) -> None:
        self._thawed.set()

    async def _meet_faults(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        await self._be_under_way()
        done = await super()._meet_faults(operation, call)
        await self._be_under_way()
        return done

    async def _be_under_way(self) -> None:
        if self.lag_seconds:
            await trio.sleep(self.lag_seconds / 2)
        await self._thawed.wait()


class Cluster(Stage):
    """`store` is what all share; nothing is done over it but what the test itself does."""

    def __init__(self, store: FaultyEngine, nursery: trio.Nursery) -> None:
        super().__init__(store, nursery)
        self.lines: dict[str, Line] = {}

    def line(self, name: str) -> Line:
        return self.lines.setdefault(name, Line(self.store, self._nursery))

    async def join(self, count: int, apart_seconds: float = 0.0, **changes: object) -> list[Node]:
        """So many nodes more, one after the other."""
        joined: list[Node] = []
        for _ in range(count):
            joined.append(await self.start(f"node{len(self.nodes) + 1}", **changes))
            await trio.sleep(apart_seconds)
        return joined

    def lag(self, seconds: float) -> None:
        """How long a call of any node is under way."""
        for line in self.lines.values():
            line.lag_seconds = seconds

    @property
    def alive(self) -> list[Node]:
        return [node for node in self.nodes if not node.ended.is_set()]

    @property
    def desired(self) -> int:
        """What all nodes together last decided on."""
        return sum(
            node.journal[-1].desired if node.journal else node.settings.workers.default_count
            for node in self.alive
        )

    @property
    def sizes(self) -> list[int]:
        return [node.size for node in self.alive]

    async def kill(self, node: Node) -> None:
        """As kill -9: at this moment its line is dead, and nothing is written any more."""
        self.cut(node)
        node.kill()
        await node.ended.wait()

    def cut(self, node: Node) -> None:
        """The store is away for it."""
        self.lines[node.name].away = True

    def heal(self, node: Node) -> None:
        self.lines[node.name].away = False

    def freeze(self, node: Node) -> None:
        self.lines[node.name].freeze()

    def thaw(self, node: Node) -> None:
        self.lines[node.name].thaw()

    async def five(self, apart_seconds: float = 0.23, **changes: object) -> list[Node]:
        """Nodes that have settled, and have nothing to do."""
        nodes = await self.join(NODES, apart_seconds, **changes)
        await trio.sleep(5.03)
        return nodes

    @asynccontextmanager
    async def never_beyond(self, demand: int) -> AsyncGenerator[None]:
        """All nodes together want no more than what is demanded and one worker each."""
        bound = max(demand, FLOOR * len(self.alive)) + len(self.alive)

        async def watch() -> None:
            while True:
                assert self.desired <= bound, [node.journal[-1] for node in self.alive]
                await trio.sleep(WATCH_SECONDS)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            yield
            nursery.cancel_scope.cancel()

    async def all_running(self, count: int, within_intervals: float) -> None:
        await until(lambda: len(self.running_now()) == count, within_intervals * INTERVAL_SECONDS)


@asynccontextmanager
async def open_cluster() -> AsyncGenerator[Cluster]:
    async with open_stage(Cluster) as cluster:
        yield cluster
