"""What nodes do beside their jobs: duties, each done by one of them at a time, and messages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import attrs
import trio

from musterd.store.duties import DutyReport, Holder
from musterd.store.leases import ReapRequest, ReapRule
from musterd.store.lifecycle import JobState
from musterd.store.outbox import Delivery
from musterd.store.retention import Ages, RetentionTask
from musterd.store.schedules import Firing
from tests.histories.nodes import Node

DUTIES = ("reaping", "retention", "schedules")
SCHEDULE = "tick"
SLOT = timedelta(milliseconds=40)
MESSAGE_SECONDS = 0.05
BATCH = 50


@attrs.define(eq=False)
class Chores:
    """`terms`: of the duties that its node has, and until when it may rely on each."""

    node: Node
    node_id: UUID
    terms: dict[str, tuple[UUID, float]] = attrs.field(factory=dict[str, tuple[UUID, float]])

    async def turn(self) -> None:
        node, dice = self.node, self.node.rng.random()
        if dice < 0.35:
            await node.renew()
        elif dice < 0.75:
            await self.duty()
        elif dice < 0.9:
            await self.deliver()
        else:
            await self.look()

    async def duty(self) -> None:
        name = self.node.rng.choice(DUTIES)
        if name not in self.terms:
            await self._take(name)
            return
        term, until = self.terms[name]
        duties, dice = self.node.line.duties, self.node.rng.random()
        if dice < 0.15:
            del self.terms[name]
            await duties.release([DutyReport(name, term)])
        elif dice < 0.4:
            asked = trio.current_time()
            kept = await duties.renew([DutyReport(name, term)], self.node.plan.duty_seconds)
            if name in kept:
                self.terms[name] = (term, asked + self.node.plan.duty_seconds)
            else:
                self.terms.pop(name, None)
        elif trio.current_time() < until:
            await self._do(name)
        else:
            del self.terms[name]

    async def _take(self, name: str) -> None:
        seconds, term = self.node.plan.duty_seconds, self.node.token()
        asked = trio.current_time()
        holder = Holder(self.node.name, self.node_id, term, seconds)
        if name in await self.node.line.duties.take([name], holder):
            self.terms[name] = (term, asked + seconds)

    async def _do(self, name: str) -> None:
        line, rng = self.node.line, self.node.rng
        if name == "reaping":
            await line.leases.reap(reaping(self.node))
        elif name == "schedules":
            await self._fire()
        elif rng.random() < 0.5:
            await line.retention.mark(retention(self.node), None)
        else:
            await line.retention.delete(retention(self.node), None)

    async def _fire(self) -> None:
        """The slot before now, which another node may have seen to; what was asked before that may
        have taken longer than the duty was had.
        """
        line, term = self.node.line, self.terms["schedules"]
        known = await line.schedules.know([SCHEDULE])
        if not known or trio.current_time() >= term[1]:
            return
        slot = known[0].now - (known[0].now - known[0].last_slot) % SLOT
        busy = self.node.rng.random() < 0.3
        await line.schedules.fire(Firing(SCHEDULE, slot, "plain", "{}", 0, None, busy))

    async def deliver(self) -> None:
        rng, outbox = self.node.rng, self.node.line.outbox
        taken = await outbox.take(self.node.token(), rng.choice((1, 3)), MESSAGE_SECONDS)
        await trio.sleep(rng.choice((0.0, 0.0, 0.01, MESSAGE_SECONDS)))
        deliveries = [self._delivery(one) for one in taken if rng.random() < 0.9]
        if deliveries:
            await outbox.settle(deliveries)

    def _delivery(self, message: Any) -> Delivery:
        dice = self.node.rng.random()
        if dice < 0.6:
            return Delivery(message.id, message.token, True, 204, None, None)
        retry = self.node.rng.choice((None, 0.0, 0.03))
        return Delivery(message.id, message.token, False, 500, "no", retry)

    async def look(self) -> None:
        """Who only reads is in nobody's way, and the other way round."""
        line = self.node.line
        match self.node.rng.randrange(5):
            case 0:
                await line.queue.observe(100)
            case 1:
                await line.events.order()
            case 2:
                await line.duties.fold_counts()
            case 3:
                await line.retention.forget_leftovers(BATCH)
            case _:
                await line.queue.counts()


def reaping(node: Node) -> ReapRequest:
    """As `manager.duties.reaping` makes it."""
    rules = {
        name: ReapRule(
            kind.on_lease_lost, kind.retry.max_retries + 1, capped=kind.max_running is not None
        )
        for name, kind in node.catalog.items()
    }
    return ReapRequest(rules, rules["plain"], BATCH)


def retention(node: Node) -> RetentionTask:
    age = node.plan.retention_seconds or None
    ended = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED)
    return RetentionTask(Ages(dict.fromkeys(ended, age), {}), BATCH)
