"""One attempt to deliver a message: body, signature, address, request, result."""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, TypeAlias

import attrs
import trio

from musterd import __version__
from musterd.catalog.kinds import delay_seconds
from musterd.config.credentials import SigningKeys
from musterd.config.faults import Unfit
from musterd.config.outside import Webhooks
from musterd.config.settings import Retry
from musterd.config.webhook_urls import (
    UrlPolicy,
    address_in,
    check_allowed,
    check_webhook_url,
    reach_of,
)
from musterd.manager.log import Log, event, extra
from musterd.store.errors import StoreError
from musterd.store.jobs import JobRecord
from musterd.store.lifecycle import ENDED, JobState
from musterd.store.outbox import Delivery, Message
from musterd.store.report import job_object
from musterd.store.threads import in_thread
from musterd.store.words import ERROR_LENGTH_MAX, time_text
from musterd.workers.runners.http_messages import (
    Answer,
    HttpRequest,
    HttpTrouble,
    NotSendable,
    retry_after_seconds,
)

if TYPE_CHECKING:
    from musterd.workers.runners.http_client import HttpClient


ENDS = {f"job.{state.value}": state for state in ENDED}
VERSION = "v1"


@attrs.frozen
class Shown:
    """How a job is shown: its tenant, its kind's attempts, and whether with its payload."""

    tenant: str
    max_attempts_of_kind: int | None
    include_payload: bool


def event_of(message: Message, record: JobRecord | None, shown: Shown) -> dict[str, object] | None:
    """The whole event; None if its job is gone."""
    data: object
    if message.body is not None:
        data = json.loads(message.body)
    elif record is not None:
        data = _job_at(message, record, shown)
    else:
        return None
    return {"type": message.type, "timestamp": time_text(message.created_at), "data": data}


def body_of(event: dict[str, object]) -> bytes:
    """The event as it is sent and signed."""
    return json.dumps(event, separators=(",", ":")).encode()


def as_it_ended(record: JobRecord, state: JobState, attempt: int | None) -> JobRecord:
    """The job as it was when it came to `state` in that attempt. Only a failed job can have gone on
    since, by a resume, which moves its attempt to the history.
    """
    if record.state is state and attempt in (None, record.attempt):
        return record
    past = next((one for one in record.attempts if one.attempt == attempt), None)
    return attrs.evolve(
        record,
        state=state,
        attempt=record.attempt if attempt is None else attempt,
        result=None,
        error=past.error if past else None,
        reason=None,
        started_at=past.started_at if past else None,
        finished_at=past.finished_at if past else None,
        lease_expires_at=None,
        heartbeat_at=None,
        request=None,
        cleared_at=None,
        attempts=tuple(one for one in record.attempts if attempt and one.attempt <= attempt),
    )


def _job_at(message: Message, record: JobRecord, shown: Shown) -> dict[str, object]:
    if state := ENDS.get(message.type):
        record = as_it_ended(record, state, message.attempt)
    job = job_object(record, shown.tenant, shown.max_attempts_of_kind)
    if not shown.include_payload:
        del job["payload"]
    return job


def signed_headers(
    keys: Sequence[bytes], message_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """All headers except the connection's own. Each key signs; without keys nothing does."""
    headers = {
        "content-type": "application/json",
        "accept-encoding": "identity",
        "user-agent": f"musterd/{__version__}",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
    }
    if keys:
        signed = [_signature(key, message_id, timestamp, body) for key in keys]
        headers["webhook-signature"] = " ".join(signed)
    return headers


def _signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    content = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(key, content, hashlib.sha256).digest()
    return f"{VERSION},{base64.b64encode(digest).decode()}"


ANSWER_BYTES_MAX = 65_536  # of its body, which is read and thrown away
RESOLVERS_MAX = 8  # threads; one that hangs in the system's resolver is left behind, and counts
ADDRESSES_MAX = 4  # of one host, tried one after the other

Resolve: TypeAlias = Callable[[str], Awaitable[Sequence[str]]]


class Unresolved(Exception):
    """The name has no address now."""


class Denied(Exception):
    """Nothing is ever sent to this host. `final`: a retry would find no other address."""

    def __init__(self, message: str, *, final: bool) -> None:
        super().__init__(message)
        self.final = final


@attrs.define(eq=False)
class SystemResolver:
    """Asks the system for a name's addresses, off the loop."""

    _limiter: trio.CapacityLimiter = attrs.field(
        factory=partial(trio.CapacityLimiter, RESOLVERS_MAX), init=False
    )

    async def __call__(self, host: str) -> Sequence[str]:
        """Raises `Unresolved`."""
        look_up = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
        try:
            found = await in_thread(look_up, abandon_on_cancel=True, limiter=self._limiter)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise Unresolved(f"{host} has no address: {reason}") from None
        return [str(where[0]) for *_, where in found]


@attrs.define(eq=False)
class Sender:
    """Posts webhooks through the node's HTTP client, which `client` creates when needed."""

    client: Callable[[], HttpClient]
    resolve: Resolve = attrs.field(factory=SystemResolver)
    own_port: Callable[[], int | None] = lambda: None

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, policy: UrlPolicy
    ) -> Answer:
        """Raises `HttpTrouble`, `NotSendable`, `Denied` or `Unresolved`."""
        request = HttpRequest.to(url, "POST", headers, body)
        origin = request.origin
        addresses = await checked_addresses(origin.host, policy, self.resolve)
        if origin.port == self.own_port() and any(map(is_of_this_machine, addresses)):
            raise Denied(f"{origin.host}:{origin.port} is this daemon itself", final=True)
        return await self.client().send(request, ANSWER_BYTES_MAX, addresses)


async def checked_addresses(host: str, policy: UrlPolicy, resolve: Resolve) -> Sequence[str]:
    """The addresses of a host, all of which may be called. Raises `Denied` or `Unresolved`. One
    forbidden address denies them all: no honest name mixes them.
    """
    literal = address_in(host)
    found = [str(literal)] if literal is not None else await resolve(host)
    for text in found:
        reach = reach_of(ipaddress.ip_address(text))
        if reach == "public" or (reach == "private" and policy.allow_private):
            continue
        message = f"{host} leads to {text}, to which nothing is sent"
        if reach == "private":
            message += ": [webhooks] allow_private = true allows it"
        raise Denied(message, final=literal is not None)
    return list(dict.fromkeys(found))[:ADDRESSES_MAX]


def is_of_this_machine(address: str) -> bool:
    """Whether one of its interfaces has the address: only then can a socket be bound to it."""
    parsed = ipaddress.ip_address(address)
    inner = getattr(parsed, "ipv4_mapped", None) or parsed
    is_v4 = isinstance(inner, ipaddress.IPv4Address)
    family = socket.AF_INET if is_v4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(inner), 0))
        except OSError:
            return False
    return True


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


class Post(Protocol):
    async def __call__(
        self, url: str, headers: Mapping[str, str], body: bytes, policy: UrlPolicy
    ) -> Answer:
        """See `Sender.post`."""
        ...


@attrs.define(eq=False)
class Courier:
    """What an attempt needs beside the message. `keys` raises ConfigError."""

    read_job: Callable[[int], Awaitable[JobRecord | None]]
    budget_of: Callable[[str], int | None]
    tenant: str
    keys: Callable[[], SigningKeys]
    post: Post
    log: Log
    call_python: CallPython | None = None
    _warned: bool = attrs.field(default=False, init=False)

    def warn_if_unsigned(self, keys: Sequence[bytes]) -> None:
        """Warns once that receivers cannot know who is calling."""
        if not keys and not self._warned:
            self._warned = True
            advice = "set webhooks.secret_file, so that receivers can tell who is calling"
            event(self.log, logging.WARNING, "webhooks are not signed", message=advice)

    async def deliver(self, message: Message, keys: SigningKeys, webhooks: Webhooks) -> Delivery:
        """Tries once, within the time limit. Never raises."""
        started_local = trio.current_time()
        try:
            with trio.fail_after(webhooks.timeout_seconds):
                said = await self._event(message, webhooks)
                if said is None:
                    return failed(message, f"job {message.job_id} is no longer there")
                if message.url.startswith(PYTHON):
                    return await self._call(message, said, webhooks)
                elapsed_seconds = trio.current_time() - started_local
                return await self._send(message, said, keys, webhooks, elapsed_seconds)
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

    async def _send(
        self,
        message: Message,
        said: Event,
        signing: SigningKeys,
        webhooks: Webhooks,
        elapsed_seconds: float,
    ) -> Delivery:
        policy, keys = webhooks.policy, signing.of(message.url)
        self.warn_if_unsigned(keys)
        body = body_of(said)
        at = message.created_at + timedelta(seconds=message.age_seconds + elapsed_seconds)
        headers = signed_headers(keys, message.message_id, int(at.timestamp()), body)
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


def judge(message: Message, answer: Answer, webhooks: Webhooks) -> Delivery:
    """Only 2xx is a delivery; redirects are not followed."""
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
    """There will be no further attempt."""
    cut = error[:ERROR_LENGTH_MAX]
    return Delivery(message.id, message.token, False, status, cut, None, gone)


def try_again(
    message: Message,
    error: str,
    webhooks: Webhooks,
    status: int | None = None,
    wished_seconds: float | None = None,
) -> Delivery:
    """Retries when the receiver asks for it, else after a growing pause; not if it is too late."""
    pause = _pause_seconds(message, webhooks)
    if wished_seconds is not None:
        pause = max(wished_seconds, min(1.0, webhooks.retry_max_seconds))
    pause = min(pause, webhooks.retry_max_seconds)
    if message.age_seconds + pause > webhooks.give_up_after_hours * HOUR_SECONDS:
        return failed(message, error, status)
    cut = error[:ERROR_LENGTH_MAX]
    return Delivery(message.id, message.token, False, status, cut, pause)


def given_back(message: Message) -> Delivery:
    """The node stopped before an answer came: another one tries at once."""
    error = "the node stopped before there was an answer"
    return Delivery(message.id, message.token, False, None, error, 0.0)


def _pause_seconds(message: Message, webhooks: Webhooks) -> float:
    """Exponential with full jitter: messages that failed together do not return together."""
    policy = Retry(
        max_retries=0,
        backoff="exponential",
        base_seconds=webhooks.retry_base_seconds,
        factor=2.0,
        max_seconds=webhooks.retry_max_seconds,
        jitter="full",
    )
    return delay_seconds(policy, max(1, message.tries), message.id, message.tries)
