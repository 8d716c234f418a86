"""What is to be told to others about jobs, kept with them until it has been."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

import attrs

WebhookState = Literal["waiting", "delivered", "failed"]


@attrs.frozen
class WebhookRecord:
    """Where a job's end is told, and how that went."""

    url: str
    sent_at: datetime | None = None  # when it was delivered
    attempts: int = 0


@attrs.frozen
class Message:
    """One thing to be told, taken under a token for a while."""

    id: int
    message_id: str  # the same at each try
    job_id: int
    url: str  # https://..., or python:module:function
    type: str  # as "job.succeeded"
    attempt: int | None  # the job's, at which it came to this
    tries: int  # this one included
    created_at: datetime
    age_seconds: float  # since it was made
    body: str | None  # JSON text of what is said of it; None = the job as it is found now
    token: UUID


class Delivery(NamedTuple):
    """What came of one try. `retry_seconds` None = no further one."""

    id: int
    token: UUID
    delivered: bool
    status: int | None  # of the answer
    error: str | None
    retry_seconds: float | None
    gone: bool = False  # the receiver wants nothing more at this URL


@attrs.frozen
class MessageRecord:
    """A message as people see it."""

    id: int
    message_id: str
    job_id: int
    url: str
    type: str
    state: WebhookState
    tries: int
    created_at: datetime
    due_at: datetime
    ended_at: datetime | None
    status: int | None
    error: str | None


@attrs.frozen
class MessageFilter:
    """Which messages to list, newest first."""

    state: WebhookState | None = None
    job_id: int | None = None
    url: str | None = None
    limit: int = 50
    before_id: int | None = None


class Outbox(Protocol):
    """The messages of one store. Errors as for `Engine`."""

    async def take(self, token: UUID, count: int, seconds: float) -> list[Message]:
        """Takes due messages for so long, the longest due first; skips those that others hold. One
        of which nothing is heard in that time is due again.
        """
        ...

    async def settle(self, deliveries: Sequence[Delivery]) -> frozenset[int]:
        """Writes what came of tries, each fenced by its token, with an event for those that ended;
        returns the ids that took it. With a receiver that is gone all fails that waits for it and
        that nobody holds, and what is made for it later.
        """
        ...

    async def next_due_seconds(self) -> float | None:
        """How long until a message is due, or due again; at most 0 = now, None = there is none."""
        ...

    async def messages(self, which: MessageFilter) -> list[MessageRecord]: ...

    async def resend(self, ids: Sequence[int]) -> frozenset[int]:
        """Makes messages due now, with a fresh start; those that were delivered are sent again. One
        that somebody is sending just now is left to him. Their receivers count as there again.
        Returns the ids that are waiting now.
        """
        ...
