"""A receiver of webhooks on the stage, and what it has got."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import trio

from musterd.config.webhook_urls import UrlPolicy
from musterd.store.outbox import MessageFilter, MessageRecord
from musterd.workers.runners.http_messages import Answer, HttpTrouble
from tests.support.message import Message
from tests.support.stage import Stage

URL = "https://example.com/hook"
OTHER = "https://other.example/"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SIGNED = {"webhooks__secret": SECRET}


@attrs.frozen
class Got(Message):
    """A request as a receiver sees it."""

    at: float
    url: str


@attrs.define(eq=False)
class Receiver:
    """Answers as its script says, and at its end as always. A whole number is a status, a fraction
    the seconds that a good answer takes, None a connection that cannot be had.
    """

    script: list[int | float | Answer | None] = attrs.field(factory=list[Any])
    always: int = 204
    got: list[Got] = attrs.field(factory=list[Got], init=False)
    under_way: int = attrs.field(default=0, init=False)
    most_at_once: int = attrs.field(default=0, init=False)

    async def __call__(
        self, url: str, headers: Mapping[str, str], body: bytes, policy: UrlPolicy
    ) -> Answer:
        del policy
        self.got.append(Got(headers, body, trio.current_time(), url))
        line = self.script.pop(0) if self.script else self.always
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            await trio.sleep(line if isinstance(line, float) else 0.1)
        finally:
            self.under_way -= 1
        if line is None:
            raise HttpTrouble("no connection to example.com:443: refused")
        if isinstance(line, Answer):
            return line
        return Answer(204 if isinstance(line, float) else line, {}, b"", overflowed=False)


def received(stage: Stage, *script: Any, always: int = 204) -> Receiver:
    receiver = Receiver(list(script), always)
    stage.post = receiver
    return receiver


async def messages(stage: Stage, **which: Any) -> list[MessageRecord]:
    return await stage.store.engine.outbox.messages(MessageFilter(**which))


async def message(stage: Stage) -> MessageRecord:
    (found,) = await messages(stage)
    return found


async def due_seconds(stage: Stage) -> float:
    """How long until a message is due that nobody holds; one must be waiting."""
    seconds = await stage.store.engine.outbox.next_due_seconds()
    assert seconds is not None
    return seconds
