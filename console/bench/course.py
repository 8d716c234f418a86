"""The course of a measurement: enqueue many, let the crew do them, then enqueue one at a time."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import attrs
import trio

from musterd.config.settings import Settings
from musterd.config.store_url import resolve_store_url
from musterd.console.bench.circumstances import bench_settings
from musterd.console.bench.figures import BATCH, Found, Order
from musterd.console.bench.kinds import BEGINS, NOTHING, bench_catalog, on_begin
from musterd.console.bench.marks import Marks
from musterd.console.opening import visit
from musterd.console.wiring import Node, early_and_late_signals, make_node
from musterd.manager.node.collecting import collect_seldom
from musterd.store.client import Client
from musterd.store.engine import Engine
from musterd.store.errors import NoSuchJob, StoreError
from musterd.store.opening import make_scratch

ANSWER_SECONDS = 10.0  # for one call of the client, which nothing else can cut short
REST_SECONDS = 1.0  # after the many: the crew is idle, and listens
GAP_SECONDS = 0.025  # after each single one
END_SECONDS = 10.0  # for the node, from being told to stop until its store is closed
REMOVE_SECONDS = 30.0


@attrs.frozen
class Course:
    """`own`: the settings as the tenant sees them in whose store it is measured; `name`: of the
    store for the occasion. `clock` is asked in several threads.
    """

    order: Order
    own: Settings
    name: str
    found: Found
    log: logging.Logger
    clock: Callable[[], float]

    async def run(self) -> None:
        """Puts what it finds into `found`, and leaves no store. Raises the store's errors."""
        deadline = trio.current_time() + self.order.within_seconds
        scope = trio.CancelScope(deadline=deadline + END_SECONDS)
        place = make_scratch(resolve_store_url(self.own, os.environ), self.own, self.name)
        with early_and_late_signals(scope.cancel):
            try:
                with scope:
                    self.found.place = await place.make()
                    await self._measure(deadline)
                if not self.found.is_whole:
                    self.found.cut = "time" if trio.current_time() >= deadline else "signal"
            finally:
                until = trio.current_time() + REMOVE_SECONDS
                with trio.CancelScope(shield=True, deadline=until) as removing:
                    await self._remove(place.remove)
        if removing.cancelled_caught:
            self.found.not_removed = f"it took longer than {REMOVE_SECONDS:g} s"

    async def _measure(self, deadline: float) -> None:
        place = self.found.place
        assert place is not None, "it has been made"
        settings = bench_settings(self.own, place, self.order.workers)
        await visit(settings, _nothing, creates=True)
        client = Client(place.url, schema=place.schema, pool_size=1, answer_seconds=ANSWER_SECONDS)
        try:
            with trio.move_on_at(deadline) as filling:
                await self._fill(client)
            if not filling.cancelled_caught:
                await self._serve(settings, client, deadline)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + END_SECONDS):
                await trio.to_thread.run_sync(client.close)

    async def _fill(self, client: Client) -> None:
        found = self.found
        found.stage = "enqueueing"
        with suppress(NoSuchJob):  # connecting does not count
            await trio.to_thread.run_sync(client.job, 0)
        began = self.clock()
        while found.enqueued < self.order.jobs:
            last = min(found.enqueued + BATCH, self.order.jobs)
            jobs = [(NOTHING, {"number": number}) for number in range(found.enqueued, last)]
            await trio.to_thread.run_sync(client.enqueue_many, jobs)
            found.enqueued, found.enqueue_seconds = last, self.clock() - began

    async def _serve(self, settings: Settings, client: Client, deadline: float) -> None:
        """One node's life, in which the jobs are done."""
        marks = Marks(settings.metrics, self.clock)
        node = make_node(settings, bench_catalog(settings.retry), self.log, marks)
        on_begin.set(marks.begins)
        collect_seldom()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, marks, client, node, deadline)
            await node.daemon.run()
            nursery.cancel_scope.cancel()
        if not self.found.is_whole:
            self.found.trouble = node.engine.last_message or ""

    async def _watch(self, marks: Marks, client: Client, node: Node, deadline: float) -> None:
        """Who tells the daemon to stop before that ends the measurement."""
        with trio.move_on_at(deadline):
            await self._drain(marks)
            await trio.sleep(REST_SECONDS)
            await self._pick_up(marks, client)
            self.found.is_whole = True
        node.daemon.stop()

    async def _drain(self, marks: Marks) -> None:
        found = self.found
        found.stage = "doing"
        while found.done < self.order.jobs:
            if marks.ended == found.done:
                await marks.more()
            found.done, found.done_seconds = marks.ended, marks.busy_seconds

    async def _pick_up(self, marks: Marks, client: Client) -> None:
        found = self.found
        found.stage = "picking up"
        enqueue = partial(_enqueue_one, client, self.clock)
        for _ in range(self.order.pick_ups):
            await trio.sleep(GAP_SECONDS)
            before = marks.ended
            job_id, committed = await trio.to_thread.run_sync(enqueue)
            while marks.ended == before:
                await marks.more()
            # It may begin before its enqueueing has been told of here.
            found.pick_ups_seconds.append(max(0.0, marks.begun_local[job_id] - committed))

    async def _remove(self, remove: Callable[[], Awaitable[None]]) -> None:
        try:
            await remove()
        except StoreError as error:
            self.found.not_removed = str(error)


def _enqueue_one(client: Client, clock: Callable[[], float]) -> tuple[int, float]:
    """Gives the job's id, and when its commit was known."""
    return client.enqueue(BEGINS), clock()


async def _nothing(_engine: Engine) -> None:
    """The schema is made by then, and that is all."""
    await trio.lowlevel.checkpoint()
