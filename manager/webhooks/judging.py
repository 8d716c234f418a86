"""What comes of a try to tell somebody something. Pure."""

from __future__ import annotations

from http import HTTPStatus

from musterd.catalog.retry import delay_seconds
from musterd.config.settings import Retry, Webhooks
from musterd.store.outbox import Delivery, Message
from musterd.workers.runners.http_messages import Answer, retry_after_seconds

THROTTLING = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
HOUR_SECONDS = 3600
HUNDRED = 100
ERROR_LENGTH_MAX = 500


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
