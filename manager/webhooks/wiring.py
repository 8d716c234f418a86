"""A tenant's postman: what it is made of, and how it leaves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import attrs
import trio

from musterd.config.credentials import resolve_signing_keys
from musterd.manager.log import event
from musterd.manager.node.waits import came_in_time
from musterd.manager.tenancy.deps import TenancyDeps
from musterd.manager.webhooks.courier import Courier
from musterd.manager.webhooks.postman import Postman
from musterd.manager.webhooks.sending import Sender
from musterd.store.leases import Settlement
from musterd.store.lifecycle import ENDED
from musterd.store.outbox import Delivery, Message
from musterd.workers.hooks import PythonHooks
from musterd.workers.tools import LiveTools


@attrs.frozen
class Mail:
    """A tenant's postman, who tells him of the end of jobs, and the functions that he calls."""

    postman: Postman
    _hooks: PythonHooks
    _deps: TenancyDeps

    async def run(self) -> None:
        """Until the postman has left."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hooks.run)
            await self.postman.run()
            nursery.cancel_scope.cancel()

    def settled(self, settlements: Sequence[Settlement]) -> None:
        """On the hot path: looks at what is at hand, and at nothing else."""
        kinds = {settlement.kind for settlement in settlements if settlement.state in ENDED}
        if kinds:
            catalog, of_all = self._deps.catalog(), bool(self._deps.settings.now.webhooks.url)
            known = (catalog[kind] for kind in kinds if kind in catalog)
            self.postman.job_ended(surely=of_all or any(kind.webhook for kind in known))

    async def leave(self, hurry: trio.Event) -> None:
        """Waits for what is under way, within the time that one try may take; gives back the rest.
        If somebody is in a hurry, all of it at once.
        """
        settings, postman = self._deps.settings.now, self.postman
        postman.close()
        await came_in_time(postman.finished, settings.webhooks.timeout_seconds, unless=hurry)
        postman.dismiss()
        with trio.move_on_after(settings.shutdown.dismiss_seconds):
            await postman.finished.wait()


def make_mail(deps: TenancyDeps, tools: LiveTools) -> Mail:
    tenant, settings = deps.tenant, deps.settings
    hooks = PythonHooks(lambda: tools.now, lambda: settings.now.catalog.python_path)
    courier = Courier(
        read_job=deps.engine.jobs.get,
        budget_of=lambda kind: deps.catalog().budget_of(kind),
        tenant=tenant,
        keys=lambda: resolve_signing_keys(settings.now, deps.environ),
        post=deps.post or Sender(tools.now.connections.client).post,
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
        if delivery.delivered:
            deps.metrics.webhook("delivered")
            event(deps.log, logging.DEBUG, "webhook delivered", **fields)
        elif delivery.retry_seconds is None:
            deps.metrics.webhook("failed")
            event(deps.log, logging.WARNING, "webhook failed", error=delivery.error, **fields)
        else:
            deps.metrics.webhook("retried")
            event(deps.log, logging.DEBUG, "webhook retried", error=delivery.error, **fields)

    return report
