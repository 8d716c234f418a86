"""HTTP kinds: the payload is sent to a server, whose answer is the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

import attrs

from musterd.catalog.kinds import HttpCall, WorkKind
from musterd.config.credentials import read_secret
from musterd.config.faults import ConfigError
from musterd.config.secrets import MASK, mask_headers, mask_parts, words_of
from musterd.store.errors import no_thread
from musterd.store.job_log import Voice
from musterd.store.leases import Claim
from musterd.store.words import time_text
from musterd.workers.outcome import Assignment, Contained, Outcome, log_contained
from musterd.workers.runners.http_messages import (
    Answer,
    HttpRequest,
    HttpTrouble,
    NotSendable,
    retry_after_seconds,
)
from musterd.workers.runners.results import (
    AnswerLimits,
    Spending,
    amounts_of,
    success,
    too_large,
)
from musterd.workers.shortage import keep_reserve, put_off

if TYPE_CHECKING:
    from musterd.workers.runners.http_client import HttpClient

BUSY_STATUSES = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
)
QUOTED_BYTES_MAX = 2_000  # of what a server says about its refusal
HUNDRED = 100
REFUSAL = Voice("answer", "error")


@attrs.frozen
class HttpRunner:
    """Makes the calls of one worker, over the connections of its node.

    `variables` is the daemon's environment: systemd says there where its credentials lie.
    """

    client: HttpClient
    limits: AnswerLimits
    variables: Mapping[str, str]
    contained: Callable[[Contained], None] = log_contained

    async def run(self, assignment: Assignment) -> Outcome:
        """Sends the job and judges the answer. Cancelled, it drops the connection."""
        kind, claim = assignment.kind, assignment.claim
        call = kind.behaviour
        assert isinstance(call, HttpCall)
        try:
            secrets = _secrets(call, self.variables)
        except ConfigError as error:  # while a secret is being replaced, it may be missing
            return Outcome("retry", None, "header_file", str(error))
        hidden = [*_masked(call.headers).values(), *secrets.values()]
        try:
            of_kind = {**call.headers, **secrets}
            body = claim.payload.encode()
            headers = _headers(of_kind, claim, kind.phase)
            request = HttpRequest.to(call.url, call.method, headers, body)
            answer = await self._send(request)
        except NotSendable:
            message = "the kind's method, url or headers do not make a valid HTTP request"
            return Outcome("failure", None, "http_request", message)
        except HttpTrouble as trouble:
            return Outcome("retry", None, "connection", mask_parts(hidden, str(trouble)))
        except OSError as error:
            waiting = put_off(error, claim, self.contained)
            assert waiting is not None, "it is short of something"
            return waiting
        spending = Spending(assignment)
        if amounts := spent_amounts(answer.headers):
            spending.add(amounts)
        if not _is_success(answer) and (said := _quoted(answer, hidden)) is not None:
            assignment.recorder.log.say(said, REFUSAL)
        return spending.ending(_judge(answer, kind, self.limits, hidden))

    async def _send(self, request: HttpRequest) -> Answer:
        """Raises OSError where the node has too little to connect."""
        keep_reserve()
        try:
            return await self.client.send(request, self.limits.result_bytes_max)
        except RuntimeError as error:  # names are looked up in a thread
            raise no_thread(error) from None

    async def close(self) -> None:
        """Has nothing to give back: the connections are the node's."""


def _secrets(call: HttpCall, variables: Mapping[str, str]) -> dict[str, str]:
    """Read for each job, so that a secret can be replaced at any time."""
    return {
        name: read_secret(f"header_files.{name}", str(path), variables)
        for name, path in call.header_files.items()
    }


def _masked(headers: Mapping[str, str]) -> dict[str, str]:
    """Those that are secrets by their name."""
    return {name: headers[name] for name, shown in mask_headers(headers).items() if shown == MASK}


def _headers(of_kind: Mapping[str, str], claim: Claim, phase: str | None) -> dict[str, str]:
    """The kind's own win over what is usual, the fence over the kind's own."""
    usual = {
        "content-type": "application/json",
        "accept": "application/json, text/plain;q=0.9, */*;q=0.1",
        "accept-encoding": "identity",
        "user-agent": "musterd",
    }
    slot = time_text(claim.scheduled_for)
    fence = {
        "musterd-job-id": str(claim.id),
        "musterd-attempt": str(claim.attempt),
        "musterd-claim-token": str(claim.token),
        **({} if phase is None else {"musterd-phase": phase}),
        **({} if claim.schedule is None else {"musterd-schedule": claim.schedule}),
        **({} if slot is None else {"musterd-scheduled-for": slot}),
        **({} if claim.traceparent is None else {"traceparent": claim.traceparent}),
    }
    own = {name.lower(): value for name, value in of_kind.items()}
    return {**usual, **own, **fence}


def _judge(answer: Answer, kind: WorkKind, limits: AnswerLimits, secrets: Sequence[str]) -> Outcome:
    if _is_success(answer):
        if answer.overflowed:
            announced = answer.headers.get("content-length", "")
            found = announced or f"more than {limits.result_bytes_max}"
            return too_large("the body", f"{found} bytes", limits)
        return success(_without(secrets, answer.body), "the body", limits)
    message = f"answered with status {mask_parts(secrets, answer.status_text)}"
    if answer.status in BUSY_STATUSES or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        pause = retry_after_seconds(answer.headers)
        return Outcome("retry", None, "http_status", message, delay_seconds=pause)
    if answer.status // HUNDRED == HTTPStatus.MULTIPLE_CHOICES // HUNDRED:
        message += "; redirects are not followed"
    return Outcome("failure", None, "http_status", message, kind.retryable)


def _is_success(answer: Answer) -> bool:
    return answer.status // HUNDRED == HTTPStatus.OK // HUNDRED


def spent_amounts(headers: Mapping[str, str]) -> Mapping[str, float] | None:
    """What the server says in `musterd-spent: tokens=120, calls=1`; None = nothing that counts."""
    pairs = [each.partition("=") for each in headers.get("musterd-spent", "").split(",")]
    try:
        return amounts_of({name.strip(): float(amount) for name, _, amount in pairs})
    except ValueError:
        return None


def _quoted(answer: Answer, secrets: Sequence[str]) -> str | None:
    """The beginning of what the server says, without secrets that it may have repeated."""
    said = answer.body[: 2 * QUOTED_BYTES_MAX].decode("utf-8", "replace")
    text = mask_parts(secrets, said.replace("\0", "\N{REPLACEMENT CHARACTER}"))
    return text[:QUOTED_BYTES_MAX].strip() or None


def _without(secrets: Sequence[str], body: bytes) -> bytes:
    for word in words_of(secrets):
        body = body.replace(word.encode(), MASK.encode())
    return body
