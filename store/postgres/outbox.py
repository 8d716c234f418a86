"""The messages for others in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from uuid import UUID

import attrs

from musterd.store.jobs import JobRecord
from musterd.store.outbox import Delivery, Message, MessageFilter, MessageRecord, WebhookRecord
from musterd.store.postgres.statements import Execute, Row, Run, numbers, texts, words


class PostgresOutbox:
    """See `store.outbox` for what each method promises."""

    def __init__(self, run: Run, execute: Execute) -> None:
        self._run, self._execute = run, execute

    async def take(self, token: UUID, count: int, seconds: float) -> list[Message]:
        params = {"token": token, "batch": count, "seconds": seconds}
        found = await self._run("take_webhooks", params)
        return [Message(*row) for row in found]

    async def settle(self, deliveries: Sequence[Delivery]) -> frozenset[int]:
        in_order = sorted(
            deliveries, key=itemgetter(0)
        )  # by id: two nodes lock rows in the same order
        params = {
            "ids": numbers(one.id for one in in_order),
            "tokens": words(one.token for one in in_order),
            "delivered": numbers(one.delivered for one in in_order),
            "statuses": numbers(one.status for one in in_order),
            "errors": texts(one.error for one in in_order),
            "retries": numbers(one.retry_seconds for one in in_order),
            "gone": numbers(one.gone for one in in_order),
        }
        return frozenset(row[0] for row in await self._run("settle_webhooks", params))

    async def next_due_seconds(self) -> float | None:
        seconds: float | None = (await self._run("next_webhook", {}))[0][0]
        return seconds

    async def messages(self, which: MessageFilter) -> list[MessageRecord]:
        params = {
            "before_id": which.before_id,
            "job_id": which.job_id,
            "state": which.state,
            "url": which.url,
            "bound": which.limit,
        }
        return [MessageRecord(*row) for row in await self._run("webhooks", params)]

    async def resend(self, ids: Sequence[int]) -> frozenset[int]:
        found = await self._run("resend_webhooks", {"ids": numbers(ids)})
        return frozenset(row[0] for row in found)


def with_webhooks(records: Sequence[JobRecord], found: Iterable[Row]) -> list[JobRecord]:
    """The records, each with what the statement `webhooks_of` says of its job."""
    webhooks = {job_id: WebhookRecord(url, sent_at, tries) for job_id, url, sent_at, tries in found}
    return [
        attrs.evolve(record, webhook=webhooks[record.id]) if record.id in webhooks else record
        for record in records
    ]
