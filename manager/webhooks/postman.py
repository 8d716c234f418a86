"""Delivers what waits in a tenant's outbox."""

from __future__ import annotations

import heapq
import logging
import math
import random
from collections.abc import Callable, Collection
from uuid import UUID

import attrs
import trio

from musterd.config.credentials import SigningKeys, resolve_signing_keys
from musterd.config.faults import ConfigError
from musterd.config.load import module_folders
from musterd.config.outside import Webhooks
from musterd.config.settings import LiveSettings
from musterd.manager.log import Log, event
from musterd.manager.node.process import came_in_time
from musterd.manager.tenancy.deps import TenancyDeps
from musterd.manager.webhooks.courier import Courier, Sender, given_back
from musterd.store.errors import StoreError
from musterd.store.outbox import Delivery, Message, Outbox
from musterd.store.waiting import Bell
from musterd.workers.hooks import PythonHooks
from musterd.workers.tools import LiveTools

LOOK_SECONDS = 5.0  # between looks of the duty
LOOK_SECONDS_RESTING = 60.0  # where nothing happens
SOON_SECONDS = 0.02  # webhooks of jobs that end together go together
PERHAPS_SECONDS = 1.0  # after the end of a job that may have a webhook of its own
TROUBLE_SECONDS = 2.0
HOLD_MARGIN_SECONDS = 30.0  # beyond the time limit of a try: to write what came of it
REMEMBERED_MAX = 10_000  # tries to come
BUSY_SECONDS = 0.25  # after a look at what others just have in hand


@attrs.define(eq=False)
class Postman:
    """Owned by its tenant. `look` is the duty: one look at all that waits."""

    outbox: Outbox
    courier: Courier
    settings: LiveSettings  # of the tenant
    on_written: Callable[[Delivery, Message], None]  # what came of a try is in the store
    log: Log
    rng: random.Random
    finished: trio.Event = attrs.field(factory=trio.Event, init=False)
    _in_flight: dict[trio.CancelScope, Message] = attrs.field(
        factory=dict[trio.CancelScope, Message], init=False
    )
    _tried: list[tuple[Delivery, Message]] = attrs.field(
        factory=list[tuple[Delivery, Message]], init=False
    )
    _look_local: float = attrs.field(default=-math.inf, init=False)
    _own_due: list[float] = attrs.field(factory=list[float], init=False)  # a heap, on our clock
    _is_due: bool = attrs.field(default=False, init=False)
    _looks_ahead: bool = attrs.field(default=False, init=False)  # the next look is the duty's
    _delivered: int = attrs.field(default=0, init=False)  # since the last look of the duty
    _may_have_more: bool = attrs.field(default=False, init=False)  # since the last look
    _closing: bool = attrs.field(default=False, init=False)
    _dismissed: bool = attrs.field(default=False, init=False)
    _troubled: bool = attrs.field(default=False, init=False)  # the secrets cannot be read
    _bell: Bell = attrs.field(factory=Bell, init=False)

    async def run(self) -> None:
        """Until it is closed and nothing is in flight."""
        async with trio.open_nursery() as tries:
            while not self._is_done():
                self._bell.clear()
                with trio.move_on_at(await self._round(tries)):
                    await self._bell.wait()
        self.finished.set()

    def job_ended(self, *, surely: bool = False) -> None:
        """A job has ended here; `surely`: and it has a webhook. Cheap: called for each job."""
        self._may_have_more = True
        look_local = trio.current_time() + (SOON_SECONDS if surely else PERHAPS_SECONDS)
        if look_local < self._look_local:
            self._look_local = look_local
            self._bell.ring()

    async def look(self) -> int:
        """Makes it look at all that waits; returns the number of attempts since the last call."""
        self._looks_ahead, self._look_local = True, -math.inf
        self._bell.ring()
        delivered, self._delivered = self._delivered, 0
        await trio.lowlevel.checkpoint()
        return delivered

    def close(self) -> None:
        """Takes what the last jobs left, then no more; sets `finished` when it is done."""
        self._closing = True
        self._look_local = -math.inf
        self._bell.ring()

    def dismiss(self) -> None:
        """Gives back what is in flight."""
        self._closing = self._dismissed = True
        for scope in self._in_flight:
            scope.cancel()
        self._bell.ring()

    def _is_done(self) -> bool:
        idle = not self._in_flight and not self._tried
        return self._closing and idle and (self._dismissed or not self._may_have_more)

    @property
    def _webhooks(self) -> Webhooks:
        return self.settings.now.webhooks

    @property
    def _next_look_local(self) -> float:
        return min([self._look_local, *self._own_due[:1]])

    @property
    def _free(self) -> int:
        """How many more may be tried now. When closing, the messages left behind, once."""
        if self._dismissed or (self._closing and not self._may_have_more):
            return 0
        return max(0, self._webhooks.concurrency - len(self._in_flight) - len(self._tried))

    async def _round(self, tries: trio.Nursery) -> float:
        """Returns when the next round is due, on the local clock, unless the bell rings earlier."""
        try:
            await self._write_and_take(tries)
        except StoreError:
            # the engine has logged it; what was tried is written later.
            if self._closing:
                self._may_have_more = False  # it keeps what was left behind
            if not self._is_done():
                return trio.current_time() + TROUBLE_SECONDS * self.rng.uniform(0.5, 1.0)
        if self._tried or self._is_done() or (self._free and self._is_due):
            return -math.inf
        return self._next_look_local if self._free else math.inf

    async def _write_and_take(self, tries: trio.Nursery) -> None:
        await self._write()
        if not self._free or not await self._something_is_due():
            return
        try:
            keys = self.courier.keys()
        except ConfigError as error:
            self._complain(error)
            return
        self._troubled = False
        wanted = self._free
        hold_seconds = self._webhooks.timeout_seconds + HOLD_MARGIN_SECONDS
        token = UUID(int=self.rng.getrandbits(128), version=4)
        taken = await self.outbox.take(token, wanted, hold_seconds)
        self._is_due = len(taken) == wanted
        if not taken:
            self._look_local = trio.current_time() + BUSY_SECONDS
        if self._closing:
            self._may_have_more = False
        for message in taken:
            scope = trio.CancelScope()
            self._in_flight[scope] = message
            tries.start_soon(self._try, scope, message, keys)

    async def _something_is_due(self) -> bool:
        """Asks the store if it is time to."""
        now = trio.current_time()
        if self._is_due:
            return True
        if self._next_look_local > now:
            return False
        # What ends while the store is asked asks for another look: it is not to be overwritten.
        self._look_local = math.inf
        while self._own_due and self._own_due[0] <= now:
            heapq.heappop(self._own_due)
        looks_ahead, self._looks_ahead = self._looks_ahead, False
        self._may_have_more, may_have_more = self._closing, self._may_have_more
        try:
            seconds = await self.outbox.next_due_seconds()
        except StoreError:
            self._look_local, self._may_have_more = -math.inf, may_have_more
            self._looks_ahead = looks_ahead
            raise
        is_due = seconds is not None and seconds <= 0
        if seconds is not None and (looks_ahead or seconds <= PERHAPS_SECONDS):
            self._look_local = min(self._look_local, now + seconds)
        if self._closing:
            self._may_have_more = is_due
        return is_due

    async def _try(self, scope: trio.CancelScope, message: Message, keys: SigningKeys) -> None:
        delivery = given_back(message)
        with scope:
            delivery = await self.courier.deliver(message, keys, self._webhooks)
        del self._in_flight[scope]
        self._tried.append((delivery, message))
        self._bell.ring()

    async def _write(self) -> None:
        """Writes the results. A refused one came too late: another node has the message."""
        tried = list(self._tried)
        if not tried:
            return
        taken = await self.outbox.settle([delivery for delivery, _ in tried])
        del self._tried[: len(tried)]
        self._delivered += len(tried)
        for delivery, message in tried:
            if delivery.id in taken:
                # Beyond the limit, or if this node dies, the duty tries again.
                if delivery.retry_seconds is not None and len(self._own_due) < REMEMBERED_MAX:
                    heapq.heappush(self._own_due, trio.current_time() + delivery.retry_seconds)
                self.on_written(delivery, message)

    def _complain(self, error: ConfigError) -> None:
        """Messages that should be signed are never sent unsigned: they wait for a fix."""
        self._look_local = trio.current_time() + LOOK_SECONDS
        self._is_due = False
        if self._closing:
            self._may_have_more = False
        if not self._troubled:
            self._troubled = True
            fields = {"message": str(error)}
            event(self.log, logging.ERROR, "webhooks wait: their secret cannot be read", **fields)


@attrs.frozen
class Mail:
    """A tenant's postman and the functions that it calls."""

    postman: Postman
    _hooks: PythonHooks
    _deps: TenancyDeps

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hooks.run)
            await self.postman.run()
            nursery.cancel_scope.cancel()

    def ended(self, kinds: Collection[str]) -> None:
        """Jobs of these kinds have ended. On the hot path: asks the store nothing."""
        if kinds:
            catalog, of_all = self._deps.catalog(), bool(self._deps.settings.now.webhooks.url)
            known = (catalog[kind] for kind in kinds if kind in catalog)
            self.postman.job_ended(surely=of_all or any(kind.webhook for kind in known))

    async def leave(self, hurry: trio.Event) -> None:
        """Waits for what is in flight, one attempt's time or until hurried; gives back the rest."""
        settings, postman = self._deps.settings.now, self.postman
        postman.close()
        await came_in_time(postman.finished, settings.webhooks.timeout_seconds, unless=hurry)
        postman.dismiss()
        with trio.move_on_after(settings.shutdown.dismiss_seconds):
            await postman.finished.wait()


def make_mail(deps: TenancyDeps, tools: LiveTools) -> Mail:
    tenant, settings = deps.tenant, deps.settings
    hooks = PythonHooks(
        lambda: tools.now, lambda: module_folders(settings.now.catalog, deps.environ)
    )
    courier = Courier(
        read_job=deps.engine.jobs.get,
        budget_of=lambda kind: deps.catalog().budget_of(kind),
        tenant=tenant,
        keys=lambda: resolve_signing_keys(settings.now, deps.environ),
        post=deps.post or Sender(tools.now.connections.client, own_port=deps.own_port).post,
        log=deps.log,
        call_python=hooks.call,
    )
    on_written = _delivery_reporter(deps)
    postman = Postman(deps.engine.outbox, courier, settings, on_written, deps.log, deps.rng)
    return Mail(postman, hooks, deps)


def _delivery_reporter(deps: TenancyDeps) -> Callable[[Delivery, Message], None]:
    def report(delivery: Delivery, message: Message) -> None:
        fields: dict[str, object] = {
            "webhook": message.message_id,
            "job_id": message.job_id,
            "attempt": message.attempt,
            "tries": message.tries,
        }
        result, level = "delivered", logging.DEBUG
        if not delivery.delivered:
            fields["error"] = delivery.error
            result = "retried"
            if delivery.retry_seconds is None:
                result, level = "failed", logging.WARNING
        deps.metrics.webhook(result)
        event(deps.log, level, f"webhook {result}", **fields)

    return report
