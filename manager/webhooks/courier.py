"""One try to deliver one message: its body, its signature, the request, and what comes of it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Protocol, TypeAlias

import attrs
import trio

from musterd.catalog.retry import delay_seconds
from musterd.config.faults import Unfit
from musterd.config.settings import Retry, Webhooks
from musterd.config.webhook_urls import UrlPolicy, check_allowed, check_webhook_url
from musterd.manager.log import Log, event, extra
from musterd.manager.webhooks.message import Shown, body_of, event_of, signed_headers
from musterd.manager.webhooks.sending import Denied, Unresolved
from musterd.store.errors import StoreError
from musterd.store.jobs import JobRecord
from musterd.store.outbox import Delivery, Message
from musterd.workers.runners.http_messages import (
    Answer,
    HttpTrouble,
    NotSendable,
    retry_after_seconds,
)

PYTHON = "python:"

Event: TypeAlias = dict[str, object]
# Calls module:function with an event; gives what went wrong, None = nothing.
CallPython: TypeAlias = Callable[[str, Event], Awaitable[str | None]]
THROTTLING = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
HOUR_SECONDS = 3600
HUNDRED = 100
ERROR_LENGTH_MAX = 500


class Post(Protocol):
    async def __call__(
        self, url: str, headers: Mapping[str, str], body: bytes, policy: UrlPolicy
    ) -> Answer:
        """See `sending.Sender.post`."""
        ...


@attrs.define(eq=False)
class Courier:
    """Everything that a try needs beside the message. `keys` raises ConfigError."""

    read_job: Callable[[int], Awaitable[JobRecord | None]]
    budget_of: Callable[[str], int | None]
    tenant: str
    keys: Callable[[], Sequence[bytes]]
    post: Post
    log: Log
    call_python: CallPython | None = None
    _warned: bool = attrs.field(default=False, init=False)

    def warn_if_unsigned(self, keys: Sequence[bytes]) -> None:
        """Says once that receivers cannot know who is calling."""
        if not keys and not self._warned:
            self._warned = True
            advice = "set webhooks.secret_file, so that receivers can tell who is calling"
            event(self.log, logging.WARNING, "webhooks are not signed", message=advice)

    async def deliver(
        self, message: Message, keys: Sequence[bytes], webhooks: Webhooks
    ) -> Delivery:
        """Tries once, within the time limit. Raises nothing."""
        started_local = trio.current_time()
        try:
            with trio.fail_after(webhooks.timeout_seconds):
                said = await self._event(message, webhooks)
                if said is None:
                    return failed(message, f"job {message.job_id} is no longer there")
                if message.url.startswith(PYTHON):
                    return await self._call(message, said, webhooks)
                elapsed_seconds = trio.current_time() - started_local
                return await self._send(message, said, _Try(keys, webhooks, elapsed_seconds))
        except trio.TooSlowError:
            error = f"no answer within {webhooks.timeout_seconds:g} s"
            return try_again(message, error, webhooks)
        except StoreError:  # the engine has logged it
            return try_again(message, "the job could not be read", webhooks)
        except Exception as error:
            # A fault of ours in one message must hold up none of the others.
            named = extra(
                webhook=message.message_id, job_id=message.job_id, attempt=message.attempt
            )
            self.log.exception("webhook cannot be sent", extra=named)
            return failed(message, f"musterd failed: {type(error).__name__}: {error}")

    async def _event(self, message: Message, webhooks: Webhooks) -> Event | None:
        record = await self.read_job(message.job_id) if message.body is None else None
        budget = None if record is None else self.budget_of(record.kind)
        whole = webhooks.include_payload or message.url.startswith(PYTHON)
        return event_of(message, record, Shown(self.tenant, budget, whole))

    async def _send(self, message: Message, said: Event, try_: _Try) -> Delivery:
        webhooks, policy = try_.webhooks, try_.webhooks.policy
        self.warn_if_unsigned(try_.keys)
        body = body_of(said)
        at = message.created_at + timedelta(seconds=message.age_seconds + try_.elapsed_seconds)
        headers = signed_headers(try_.keys, message.message_id, int(at.timestamp()), body)
        try:
            check_webhook_url(message.url)  # what was inserted by hand, or allowed until lately
            check_allowed(message.url, policy)
            answer = await self.post(message.url, headers, body, policy)
        except Unfit as unfit:
            return failed(message, f"the webhook's URL cannot be used: {unfit}")
        except NotSendable:
            return failed(message, "the webhook's URL cannot be used")
        except Denied as denied:
            if denied.final:
                return failed(message, str(denied))
            return try_again(message, str(denied), webhooks)
        except (HttpTrouble, Unresolved) as trouble:
            return try_again(message, str(trouble), webhooks)
        return judge(message, answer, webhooks)

    async def _call(self, message: Message, said: Event, webhooks: Webhooks) -> Delivery:
        if self.call_python is None:
            return failed(message, "this node calls no Python functions")
        error = await self.call_python(message.url.removeprefix(PYTHON), said)
        if error is None:
            return delivered(message, None)
        return try_again(message, error, webhooks)


@attrs.frozen
class _Try:
    keys: Sequence[bytes] = attrs.field(repr=False)
    webhooks: Webhooks
    elapsed_seconds: float


def judge(message: Message, answer: Answer, webhooks: Webhooks) -> Delivery:
    """Only 2xx is a delivery; a redirect is none, and is not followed."""
    status = answer.status
    if status // HUNDRED == HTTPStatus.OK // HUNDRED:
        return delivered(message, status)
    said = f"answered with status {answer.status_text}"
    if status == HTTPStatus.GONE:
        return failed(message, f"{said}: it wants no more", status, gone=True)
    if status // HUNDRED == HTTPStatus.MULTIPLE_CHOICES // HUNDRED:
        said += "; redirects are not followed"
    longest = webhooks.retry_max_seconds
    wish = retry_after_seconds(answer.headers, longest) if status in THROTTLING else None
    return try_again(message, said, webhooks, status, wish)


def delivered(message: Message, status: int | None) -> Delivery:
    return Delivery(message.id, message.token, True, status, None, None)


def failed(
    message: Message, error: str, status: int | None = None, *, gone: bool = False
) -> Delivery:
    """There will be no further try."""
    cut = error[:ERROR_LENGTH_MAX]
    return Delivery(message.id, message.token, False, status, cut, None, gone)


def try_again(
    message: Message,
    error: str,
    webhooks: Webhooks,
    status: int | None = None,
    wished_seconds: float | None = None,
) -> Delivery:
    """The next try comes when the receiver wishes, else after a pause that grows; none comes after
    `give_up_after_hours`.
    """
    pause = _pause_seconds(message, webhooks)
    if wished_seconds is not None:
        pause = max(wished_seconds, min(1.0, webhooks.retry_max_seconds))
    pause = min(pause, webhooks.retry_max_seconds)
    if message.age_seconds + pause > webhooks.give_up_after_hours * HOUR_SECONDS:
        return failed(message, error, status)
    cut = error[:ERROR_LENGTH_MAX]
    return Delivery(message.id, message.token, False, status, cut, pause)


def given_back(message: Message) -> Delivery:
    """The node stopped in the middle of it: somebody else tries at once."""
    error = "the node stopped before there was an answer"
    return Delivery(message.id, message.token, False, None, error, 0.0)


def _pause_seconds(message: Message, webhooks: Webhooks) -> float:
    """Exponential, all of it jitter: messages that failed together do not come again together."""
    policy = Retry(
        max_retries=0,
        backoff="exponential",
        base_seconds=webhooks.retry_base_seconds,
        factor=2.0,
        max_seconds=webhooks.retry_max_seconds,
        jitter="full",
    )
    return delay_seconds(policy, max(1, message.tries), message.id, message.tries)
